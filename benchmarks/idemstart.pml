/*
 * IdemStart (BUG false) for Spin 6.5.2: K <= 4 keys, W <= 3 workers, lease epochs up to E <= 3.
 *
 * Depth-first, the fastest full search found (-w: log2 of the hash slots, 21 for a million states, 23 for five):
 *   spin -a -DK=3 -DW=2 -DE=1 idemstart.pml
 *   gcc -O2 -DSAFETY -DNOREDUCE -DNOCOMP -DNOFAIR -DNOBOUNDCHECK -DMEMLIM=4096 -o pan pan.c
 *   ./pan -m1000 -w21
 * Breadth-first:
 *   gcc -O2 -DSAFETY -DNOREDUCE -DNOCOMP -DNOFAIR -DNOBOUNDCHECK -DMEMLIM=4096 -DBFS -o pan_bfs pan.c
 *   ./pan_bfs -w21
 * (-DNOCOMP -DNOFAIR -DNOBOUNDCHECK are worth a few percent and change no count.)
 *
 * One process with one control point; every action instance is one d_step back to it, so no intermediate state is
 * stored: "states, stored" is the number of distinct states and "transitions" the number generated, the initial state
 * included, with no offset (985919 and 5641510 for K=3 W=2 E=1).  AtMostOneStart is asserted where `starts` changes,
 * which is equivalent to asserting it in every state.  The bit fields make a 20-byte vector; bytes make 36, and the
 * search a third slower.
 */

#ifndef K
#define K 3
#endif
#ifndef W
#define W 2
#endif
#ifndef E
#define E 1
#endif
#if K < 1 || K > 4 || W < 1 || W > 3 || E < 0 || E > 3
#error "this model is written for K <= 4, W <= 3, E <= 3"
#endif

/* rcpt */
#define ABSENT          0
#define PENDING         1
#define PENDING_CORRUPT 2
#define COMPLETED       3
#define BOTH_CORRUPT    4
/* att */
#define NONE            0
#define OFFERED         1
#define CLAIMED         2
#define RUNNING         3
#define TERMINAL        4

/* One copy of a macro per key, per worker, per (key, worker). */
#if K == 1
#define EACH_KEY(M) M(1)
#elif K == 2
#define EACH_KEY(M) M(1) M(2)
#elif K == 3
#define EACH_KEY(M) M(1) M(2) M(3)
#else
#define EACH_KEY(M) M(1) M(2) M(3) M(4)
#endif
#if W == 1
#define EACH_WORKER(M) M(1)
#define EACH_PAIR(k)   PAIR(k, 1)
#elif W == 2
#define EACH_WORKER(M) M(1) M(2)
#define EACH_PAIR(k)   PAIR(k, 1) PAIR(k, 2)
#else
#define EACH_WORKER(M) M(1) M(2) M(3)
#define EACH_PAIR(k)   PAIR(k, 1) PAIR(k, 2) PAIR(k, 3)
#endif

#define KEY_VARS(k) \
  unsigned rcpt##k : 3; unsigned att##k : 3; unsigned holder##k : 2; unsigned epoch##k : 2; unsigned starts##k : 2;
#define WORKER_VARS(w) \
  unsigned job##w : 3; unsigned jep##w : 2;

EACH_KEY(KEY_VARS)
EACH_WORKER(WORKER_VARS)

#define SETTLE(k) rcpt##k = (rcpt##k == PENDING -> COMPLETED : rcpt##k)

#define KEY(k) \
  :: d_step { rcpt##k == ABSENT -> rcpt##k = PENDING }                          /* Submit  */ \
  :: d_step { rcpt##k == PENDING && att##k == NONE -> att##k = OFFERED }        /* Offer   */ \
  :: d_step { holder##k != 0 && epoch##k < E ->                                 /* Expire  */ \
       holder##k = 0; epoch##k = epoch##k + 1; \
       att##k = (att##k == CLAIMED -> OFFERED : (att##k == RUNNING -> TERMINAL : att##k)) } \
  :: d_step { rcpt##k == PENDING || rcpt##k == COMPLETED || rcpt##k == PENDING_CORRUPT -> \
       rcpt##k = (rcpt##k == PENDING -> PENDING_CORRUPT : BOTH_CORRUPT) }     /* Corrupt */ \
  :: d_step { att##k == OFFERED || att##k == CLAIMED ->                         /* Cancel  */ \
       att##k = TERMINAL; holder##k = 0; SETTLE(k) }

#define OWNS(k, w) (job##w == k && jep##w == epoch##k && holder##k == w)

#define PAIR(k, w) \
  :: d_step { att##k == OFFERED && holder##k == 0 && job##w == 0 ->             /* Claim    */ \
       att##k = CLAIMED; holder##k = w; job##w = k; jep##w = epoch##k } \
  :: d_step { att##k == CLAIMED && rcpt##k == PENDING && OWNS(k, w) ->          /* Start    */ \
       att##k = RUNNING; starts##k = (starts##k < 2 -> starts##k + 1 : 2); \
       assert(starts##k <= 1) } \
  :: d_step { att##k == RUNNING && OWNS(k, w) ->                                /* Complete */ \
       att##k = TERMINAL; holder##k = 0; job##w = 0; jep##w = 0; SETTLE(k) }

#define WORKER(w) \
  :: d_step { job##w != 0 -> job##w = 0; jep##w = 0 }                           /* Crash */

active proctype idemstart() {
end:
  do
  EACH_KEY(KEY)
  EACH_KEY(EACH_PAIR)
  EACH_WORKER(WORKER)
  od
}

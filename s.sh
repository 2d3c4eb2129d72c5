stty cols 120 rows 40
export TERM=xterm-256color PATH=/tmp/vk/bin:$PATH
onestart flow run release.py:release release-7 '"1.7.0"'
echo "exit code $?"
onestart flow status release-7
onestart flow answer release-7 human-after-18b1a512-0 yes --by anna
onestart flow resume release.py:release release-7
onestart flow verify release-7
onestart flow status
onestart flow --help
onestart flow run --help

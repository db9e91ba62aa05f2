#!/usr/bin/env bash
# Starts or stops a Docker daemon by hand, where no init system does. Debian's packages are docker.io, iptables, debootstrap.
# usage: dockerd.sh start | stop
set -euo pipefail
run=${DOCKERD_RUN:-/run/dockerd-local}
pid=$run/pid
dockers=${DOCKERD_SYSTEM_RUN:-/run} # where Docker keeps what it knows of its own processes

# began prints when process $1 was started, in ticks since the machine was. With its number it is a name of the process that
# stays, which the command line does not: it is empty for some milliseconds of every exec.
began() { awk '{ sub(/.*\) /, "") } $1 != "Z" { print $20 }' "/proc/$1/stat" 2>/dev/null || :; }
running() {
  local p start
  [ -f "$pid" ] && read -r p start < "$pid" && [ -n "$start" ] && [ "$(began "$p")" = "$start" ]
}
# forget removes what a daemon that was killed has left behind: ids that may be other processes' by now, which a new daemon
# takes for its own and gives up, or waits for.
forget() {
  forget_unless dockerd "$dockers/docker.pid"
  forget_unless containerd "$dockers/docker/containerd/containerd.pid"
}
forget_unless() { # NAME FILE
  [ ! -f "$2" ] || grep -qsE "^[0-9]+ \($1\) [^Z]" "/proc/$(cat "$2")/stat" || rm -f "$2"
}
answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

case ${1:-} in
start)
  answers && exit 0 # there is one, whoever has started it
  if ! running; then
    mkdir -p "$run"
    forget
    # The MTU of this machine's interface may be smaller than the bridge's default of 1500.
    setsid dockerd --mtu 1400 > "$run/log" 2>&1 < /dev/null &
    echo "$! $(began $!)" > "$pid"
  fi
  for _ in $(seq 300); do
    answers && exit 0
    running || break
    sleep 0.2
  done
  echo "dockerd.sh: the daemon $(running && echo 'does not answer' || echo 'has ended'); the end of $run/log:" >&2
  tail -n 20 "$run/log" >&2
  exit 1
  ;;
stop)
  if running; then
    read -r p _ < "$pid"
    kill "$p" 2>/dev/null || : # it may end by itself just now
    while running; do sleep 0.1; done
  fi
  rm -f "$pid"
  ;;
*)
  sed -n 's/^# usage: /usage: /p' "$0" >&2
  exit 2
  ;;
esac

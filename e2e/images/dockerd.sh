#!/usr/bin/env bash
# Starts or stops a Docker daemon by hand, where no init system does. Debian's packages are docker.io, iptables, debootstrap.
# usage: dockerd.sh start | stop
set -euo pipefail
run=${DOCKERD_RUN:-/run/dockerd-local}
pid=$run/pid

running() { [ -f "$pid" ] && grep -qz dockerd "/proc/$(cat "$pid")/cmdline" 2>/dev/null; }
answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

case ${1:-} in
start)
  answers && exit 0 # there is one, whoever has started it
  if ! running; then
    mkdir -p "$run"
    # The MTU of this machine's interface may be smaller than the bridge's default of 1500.
    setsid dockerd --mtu 1400 > "$run/log" 2>&1 < /dev/null &
    echo $! > "$pid"
  fi
  for _ in $(seq 150); do
    answers && exit 0
    running || break
    sleep 0.2
  done
  tail -n 5 "$run/log" >&2
  exit 1
  ;;
stop)
  if running; then
    p=$(cat "$pid")
    kill "$p"
    while [ -d "/proc/$p" ]; do sleep 0.1; done
  fi
  rm -f "$pid"
  ;;
*)
  sed -n 's/^# usage: /usage: /p' "$0" >&2
  exit 2
  ;;
esac

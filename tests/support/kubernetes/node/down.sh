#!/bin/bash
# down.sh: end what up.sh started (by pid), take the pods' mounts, links, rules and cgroups away.
#   down.sh          keep the cache; lose the cluster's state
#   down.sh keep     also keep the state (etcd, images), so that up.sh continues with it
H=${K8S_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/lakewarden/kubernetes/node}; C=$H/cache; S=$H/state; RUN=$H/run; R=$C/root
export PATH=$C/bin:$R/usr/bin:$R/usr/sbin:$PATH
stop() { # seconds of grace, names...
  local g=$(($1 * 10)) n p; shift
  for n in "$@"; do p=$(cat "$RUN/$n.pid" 2>/dev/null) && kill "$p" 2>/dev/null; done
  for n in "$@"; do
    p=$(cat "$RUN/$n.pid" 2>/dev/null) || continue
    while kill -0 "$p" 2>/dev/null && [ $g -gt 0 ]; do sleep 0.1; g=$((g - 1)); done
    kill -9 "$p" 2>/dev/null; rm -f "$RUN/$n.pid"
  done
}
stop 2 kubelet router proxy scheduler kcm
CTR() { ctr -a "$RUN/containerd.sock" -n k8s.io "$@"; }
if [ -S "$RUN/containerd.sock" ]; then
  for t in $(CTR tasks ls -q 2>/dev/null); do CTR tasks kill -s KILL "$t" 2>/dev/null; done
  sleep 0.5
  for t in $(CTR tasks ls -q 2>/dev/null); do CTR tasks rm -f "$t" >/dev/null 2>&1; done
  for t in $(CTR containers ls -q 2>/dev/null); do CTR containers rm "$t" >/dev/null 2>&1; done
fi
stop 2 apiserver; stop 3 etcd containerd
# shims that are left name our own socket in their command line: end them one by one, by pid
for p in $(pgrep -f -- "containerd-shim-runc-v2 .*-address $RUN/containerd.sock"); do kill -9 "$p"; done
awk -v h="$H/" '$2 ~ "^"h"(state|run)/" {print $2}' /proc/mounts | sort -r | while read -r m; do umount -l "$m"; done
for n in /run/netns/cni-*; do [ -e "$n" ] && { umount -l "$n"; rm -f "$n"; }; done
ip link del cni-lab 2>/dev/null; ip link del k8s-node 2>/dev/null
T() { LD_LIBRARY_PATH=$R/usr/lib/x86_64-linux-gnu XTABLES_LIBDIR=$R/usr/lib/x86_64-linux-gnu/xtables "$@"; }
if T iptables-save -t filter 2>/dev/null | grep -q KUBE-; then T iptables-save -t filter | grep -v KUBE- | T iptables-restore; fi
for s in $(T ipset list -n 2>/dev/null | grep -i kube); do T ipset destroy "$s"; done
for f in ip ip6; do LD_LIBRARY_PATH=$R/usr/lib/x86_64-linux-gnu nft delete table $f kube-proxy 2>/dev/null; done
for c in /sys/fs/cgroup/*/kubepods; do find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null; done
for f in "$RUN"/sysctl-*; do [ -e "$f" ] || continue; k=${f##*/sysctl-}; cat "$f" > /proc/sys/${k//./\/} 2>/dev/null; done
rm -rf "$RUN"
# what the kubelet, libcni and the shims write outside $K8S_HOME whatever they are told
rm -rf /var/lib/cni/results /run/containerd/fifo /run/containerd/s /run/containerd/runc
# (cni.lock and the blob cache are buildah's)
rm -f /etc/cni/net.d/cni.lock /var/lib/containers/cache/blob-info-cache-v1.boltdb
rm -rf /var/lib/kubelet/device-plugins; rmdir /var/lib/containers/cache /var/lib/containers /var/lib/kubelet /var/lib/cni /run/containerd /etc/cni/net.d /etc/cni /opt/cni/bin /opt/cni 2>/dev/null
[ "${1:-}" = keep ] || rm -rf "$S"
exit 0

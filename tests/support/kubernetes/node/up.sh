#!/bin/bash
# up.sh: a real single-node Kubernetes (etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
# kubelet, kube-proxy, CoreDNS, containerd + runc, CNI bridge) from package registries alone, with
# kube-router's network policy controller: what a NetworkPolicy forbids does not get through.
# Idempotent. Everything lies under $K8S_HOME; $K8S_HOME/cache is what a CI keeps between runs.
#   up.sh            fetch and build what the cache lacks, then start the cluster
#   up.sh fetch      only fill the cache
set -euo pipefail
H=${K8S_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/lakewarden/kubernetes/node}; C=$H/cache; S=$H/state; RUN=$H/run; LOG=$H/log
KV=${K8S_VERSION:-1.34.0}; ETCDV=v3.6.4; CNIV=v1.7.1; COREDNSV=v1.12.4   # the CoreDNS whose client-go is v0.34.0
ROUTERV=v2.1.0
JOBS=${K8S_JOBS:-$(nproc)}
NODE=${K8S_NODE:-lab}; NODE_IP=172.30.0.1; POD_NET=10.244.0.0/24; SVC_NET=10.96.0.0/16; DNS_IP=10.96.0.10
R=$C/root
export PATH=$C/bin:$R/usr/bin:$R/usr/sbin:/usr/local/go/bin:$PATH
LIBS=$R/usr/lib/x86_64-linux-gnu:$R/lib/x86_64-linux-gnu
mkdir -p "$C/bin" "$C/cni" "$C/tmp" "$S" "$RUN/cni" "$RUN/pki" "$LOG"
T0=$SECONDS
say() { printf '%5ds  %s\n' $((SECONDS - T0)) "$*"; }

# ---------------------------------------------------------------- cache: Debian packages, unpacked and not installed
fetch_debs() {
  [ -e "$R/.done-2" ] && return
  mkdir -p "$C/debs" "$R"
  (cd "$C/debs" && apt-get -qq -o APT::Sandbox::User=root download containerd runc nftables libnftables1 libnftnl11 \
     libxtables12 mmdebstrap buildah golang-github-containers-common golang-github-containers-image \
     libgpgme11 libassuan0 libdevmapper1.02.1 libsubid4 \
     iptables libip4tc2 libip6tc2 libmnl0 libnfnetlink0 libnetfilter-conntrack3 ipset libipset13 >/dev/null)
  for d in "$C"/debs/*.deb; do dpkg -x "$d" "$R"; done
  cp -a "$R/lib/." "$R/usr/lib/"          # a merged /usr, so that $R/usr can be laid over /usr (see image.sh)
  for p in iptables iptables-save iptables-restore; do ln -sf xtables-legacy-multi "$R/usr/sbin/$p"; done
  rm -rf "$C/debs"; touch "$R/.done-2"
  say "debian packages unpacked"
}

# ---------------------------------------------------------------- cache: Kubernetes, etcd, CNI, CoreDNS, pause (Go proxy)
build() {
  [ -e "$C/bin/.built-$KV" ] && return
  local src=$C/src
  export GOMODCACHE=${GOMODCACHE:-$C/gomod} GOCACHE=${GOCACHE:-$C/gobuild} GOTMPDIR=$C/tmp GOFLAGS=-mod=mod CGO_ENABLED=0
  mkdir -p "$src/kube" "$src/pause" "$src/coredns"
  cd "$src"
  local gm=$GOMODCACHE/cache/download/k8s.io/kubernetes/@v/v$KV.mod
  printf 'module lab\n\ngo 1.24.0\n' > go.mod
  go mod download k8s.io/kubernetes@v$KV
  # k8s.io/kubernetes asks for its staging modules at v0.0.0: each is replaced by its published v0.x.y
  { printf 'module lab\n\ngo 1.24.0\n\ngodebug default=go1.24\n\nrequire (\n\tk8s.io/kubernetes v%s\n\tgo.etcd.io/etcd/server/v3 %s\n\tgithub.com/containernetworking/plugins %s\n)\n\nreplace (\n' "$KV" "$ETCDV" "$CNIV"
    sed -n "s#^\t\(k8s.io/[a-z-]*\) => ./staging.*#\t\1 => \1 v0.${KV#1.}#p" "$gm"; echo ')'; } > go.mod
  cat > kube/main.go <<'E'
// One program for every Kubernetes component, chosen by the name it is called by.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	var c *cobra.Command
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = kcm.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	case "kube-proxy":
		c = proxy.NewProxyCommand()
	case "kubelet":
		c = kubelet.NewKubeletCommand(context.Background())
	default:
		fmt.Fprintf(os.Stderr, "unknown program %q\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(c))
}
E
  cat > pause/main.go <<'E'
// The sandbox container: holds the namespaces, reaps orphans, ends on SIGTERM.
package main

import (
	"os/signal"
	"os"
	"syscall"
)

func main() {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range c {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
E
  go get ./kube 2>&1 | grep -v -e downloading -e upgraded -e '^go: added' || true
  say "modules downloaded"
  local ld="-s -w" p
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ld="$ld -X $p.gitVersion=v$KV -X $p.gitMajor=1 -X $p.gitMinor=$(echo "$KV" | cut -d. -f2)"
  done
  go build -p "$JOBS" -trimpath -ldflags "$ld" -o "$C/bin/kube" ./kube
  for p in etcd kubectl kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet; do ln -sf kube "$C/bin/$p"; done
  say "kube built: $(stat -c %s "$C/bin/kube") bytes"
  go build -p "$JOBS" -trimpath -ldflags "-s -w" -o "$C/bin/pause" ./pause
  for p in main/bridge main/loopback ipam/host-local; do
    go build -p "$JOBS" -trimpath -ldflags "-s -w" -o "$C/cni/" github.com/containernetworking/plugins/plugins/$p
  done
  say "cni plugins and pause built"
  # CoreDNS in a module of its own (its gRPC is newer), with the plugins a cluster needs and no cloud provider's
  cd "$src/coredns"
  printf 'module dns\n\ngo 1.24.0\n\nrequire github.com/coredns/coredns %s\n' "$COREDNSV" > go.mod
  { printf 'package main\n\nimport (\n\t"github.com/coredns/coredns/coremain"\n'
    for p in cache errors health kubernetes loadbalance ready; do printf '\t_ "github.com/coredns/coredns/plugin/%s"\n' $p; done
    printf ')\n\nfunc main() { coremain.Run() }\n'; } > main.go
  go get . 2>&1 | grep -v -e downloading -e upgraded -e '^go: added' || true
  go build -p "$JOBS" -trimpath -ldflags "-s -w" -o "$C/bin/coredns" .
  say "coredns built"
  touch "$C/bin/.built-$KV"
}

# ---------------------------------------------------------------- cache: kube-router (Go proxy), by its own go.sum
build_router() {
  [ -e "$C/bin/.router-$ROUTERV" ] && return
  export GOMODCACHE=${GOMODCACHE:-$C/gomod} GOCACHE=${GOCACHE:-$C/gobuild} GOTMPDIR=$C/tmp CGO_ENABLED=0
  local dir; dir=$(cd "$C/tmp" && GOFLAGS=-mod=mod go mod download -json "github.com/cloudnativelabs/kube-router/v2@$ROUTERV" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  (cd "$dir" && GOFLAGS=-mod=readonly go build -p "$JOBS" -trimpath -buildvcs=false -ldflags "-s -w" -o "$C/bin/kube-router" ./cmd/kube-router 2>&1 | { grep -v downloading || true; })
  touch "$C/bin/.router-$ROUTERV"
  say "kube-router built"
}

# ---------------------------------------------------------------- helpers
daemon() { # name, command...
  local n=$1; shift
  if [ -e "$RUN/$n.pid" ] && kill -0 "$(cat "$RUN/$n.pid")" 2>/dev/null; then return; fi
  setsid "$@" >> "$LOG/$n.log" 2>&1 < /dev/null &
  echo $! > "$RUN/$n.pid"
}
wait_for() { # seconds, what, command...
  local n=$(($1 * 5)) w=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    n=$((n - 1)); if [ $n -le 0 ]; then say "gave up: $w"; return 1; fi
    sleep 0.2
  done
  say "$w"
}
scratch_image() { # name:tag, program: a docker archive with one layer and one file, on stdout
  local d; d=$(mktemp -d -p "$C/tmp"); local b; b=$(basename "$2")
  tar -C "$(dirname "$2")" --owner=0 --group=0 --mtime=@0 -cf "$d/layer.tar" "$b"
  local sum; sum=$(sha256sum "$d/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/%s"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$b" "$sum" > "$d/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" > "$d/manifest.json"
  tar -C "$d" -cf - manifest.json config.json layer.tar; rm -rf "$d"
}
kctl() { "$C/bin/kubectl" --kubeconfig "$RUN/admin.conf" "$@"; }
CTR() { ctr -a "$RUN/containerd.sock" -n k8s.io "$@"; }

# ---------------------------------------------------------------- certificates, tokens, kubeconfigs
pki() {
  cd "$RUN/pki"
  [ -e done ] && return
  local n
  for n in ca sa apiserver kubelet-client; do openssl ecparam -genkey -name prime256v1 -noout -out $n.key; done
  openssl req -x509 -new -key ca.key -subj /CN=lab-ca -days 365 -out ca.crt 2>/dev/null
  printf 'subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:%s,IP:10.96.0.1\nextendedKeyUsage=serverAuth\n' $NODE_IP > san
  printf 'extendedKeyUsage=clientAuth\n' > cli
  openssl req -new -key apiserver.key -subj /CN=kube-apiserver | openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile san -out apiserver.crt 2>/dev/null
  openssl req -new -key kubelet-client.key -subj /O=system:masters/CN=kube-apiserver-kubelet-client | openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile cli -out kubelet-client.crt 2>/dev/null
  : > tokens.csv; chmod 600 tokens.csv
  account() { # file, user, group
    local t; t=$(openssl rand -hex 16); printf '%s,%s,%s,"%s"\n' "$t" "$2" "$2" "$3" >> tokens.csv
    cat > "$RUN/$1.conf" <<E
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://$NODE_IP:6443", certificate-authority: $RUN/pki/ca.crt}}]
users: [{name: u, user: {token: $t}}]
contexts: [{name: lab, context: {cluster: lab, user: u}}]
current-context: lab
E
    chmod 600 "$RUN/$1.conf"
  }
  account admin admin system:masters
  account kcm system:kube-controller-manager ""
  account scheduler system:kube-scheduler ""
  account proxy system:kube-proxy ""
  account router kube-router system:masters
  account kubelet system:node:$NODE system:nodes
  touch done
}

# ---------------------------------------------------------------- configuration files
config() {
  cat > "$RUN/containerd.toml" <<E
version = 2
root = "$S/containerd"
state = "$RUN/containerd"
oom_score = 0
[grpc]
  address = "$RUN/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$S/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$C/cni"
    conf_dir = "$RUN/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$R/usr/sbin/runc"
        SystemdCgroup = false
E
  cat > "$RUN/cni/10-lab.conflist" <<E
{"cniVersion": "1.0.0", "name": "lab", "plugins": [
  {"type": "bridge", "bridge": "cni-lab", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$S/ipam", "ranges": [[{"subnet": "$POD_NET"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
E
  # Who asked for what: tests compare it with the rights that were given.
  cat > "$RUN/audit.yaml" <<E
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts"], namespaces: [${AUDITED:-lakewarden}]}
- {level: None}
E
  cat > "$RUN/kubelet.yaml" <<E
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$RUN/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
address: $NODE_IP
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
podLogsDir: $LOG/pods
staticPodPath: ""
volumePluginDir: $S/volumeplugins
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
E
}

host() { # the node's own address and the kernel's switches (the old values are kept for down.sh)
  ip link show k8s-node >/dev/null 2>&1 || { ip link add k8s-node type dummy 2>/dev/null || ip link add k8s-node type bridge; }
  ip addr replace $NODE_IP/32 dev k8s-node; ip link set k8s-node up
  local k
  for k in net.ipv4.ip_forward vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops; do
    [ -e "$RUN/sysctl-$k" ] || cat /proc/sys/${k//./\/} > "$RUN/sysctl-$k"
  done
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

start() {
  host; pki; config
  daemon containerd containerd -c "$RUN/containerd.toml"
  daemon etcd "$C/bin/etcd" --name lab --data-dir "$S/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster lab=http://127.0.0.1:2380 --unsafe-no-fsync
  daemon apiserver "$C/bin/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --advertise-address $NODE_IP --bind-address 0.0.0.0 --secure-port 6443 \
    --tls-cert-file "$RUN/pki/apiserver.crt" --tls-private-key-file "$RUN/pki/apiserver.key" --client-ca-file "$RUN/pki/ca.crt" \
    --token-auth-file "$RUN/pki/tokens.csv" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --service-account-issuer https://kubernetes.default.svc.cluster.local --service-account-key-file "$RUN/pki/sa.key" --service-account-signing-key-file "$RUN/pki/sa.key" \
    --service-cluster-ip-range $SVC_NET --allow-privileged --audit-policy-file "$RUN/audit.yaml" --audit-log-path "$LOG/audit.log" \
    --kubelet-client-certificate "$RUN/pki/kubelet-client.crt" --kubelet-client-key "$RUN/pki/kubelet-client.key" --kubelet-preferred-address-types InternalIP
  daemon kcm "$C/bin/kube-controller-manager" --kubeconfig "$RUN/kcm.conf" --bind-address 127.0.0.1 --leader-elect=false --use-service-account-credentials \
    --service-account-private-key-file "$RUN/pki/sa.key" --root-ca-file "$RUN/pki/ca.crt" --cluster-cidr $POD_NET
  daemon scheduler "$C/bin/kube-scheduler" --kubeconfig "$RUN/scheduler.conf" --bind-address 127.0.0.1 --leader-elect=false \
    --authentication-kubeconfig "$RUN/scheduler.conf" --authorization-kubeconfig "$RUN/scheduler.conf"
  wait_for 60 "containerd answers" CTR version
  CTR images ls -q | grep -q localhost/pause:1 || scratch_image localhost/pause:1 "$C/bin/pause" | CTR images import - >/dev/null
  wait_for 120 "kube-apiserver is ready" kctl get --raw /readyz
  daemon kubelet "$C/bin/kubelet" --config "$RUN/kubelet.yaml" --kubeconfig "$RUN/kubelet.conf" --root-dir "$S/kubelet" --cert-dir "$S/kubelet/pki" \
    --hostname-override $NODE --node-ip $NODE_IP
  daemon proxy env LD_LIBRARY_PATH="$LIBS" "$C/bin/kube-proxy" --kubeconfig "$RUN/proxy.conf" --proxy-mode nftables --cluster-cidr $POD_NET \
    --hostname-override $NODE --conntrack-max-per-core 0 --conntrack-min 0 --healthz-bind-address 127.0.0.1:10256
  wait_for 120 "node is Ready" sh -c "'$C/bin/kubectl' --kubeconfig '$RUN/admin.conf' get node $NODE -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].status}' | grep -q True"
  daemon router env LD_LIBRARY_PATH="$LIBS" XTABLES_LIBDIR="$R/usr/lib/x86_64-linux-gnu/xtables" "$C/bin/kube-router" --kubeconfig "$RUN/router.conf" \
    --run-firewall=true --run-router=false --run-service-proxy=false --service-cluster-ip-range $SVC_NET --hostname-override $NODE --health-port 0
  CTR images ls -q | grep -q localhost/coredns:1 || scratch_image localhost/coredns:1 "$C/bin/coredns" | CTR images import - >/dev/null
  dns_manifests | kctl apply -f - >/dev/null
  wait_for 60 "default service account is there" kctl -n default get serviceaccount default
  wait_for 60 "coredns is ready" kctl -n kube-system wait --for=condition=Available --timeout=1s deployment/coredns
  wait_for 60 "network policies are in force" env LD_LIBRARY_PATH="$LIBS" XTABLES_LIBDIR="$R/usr/lib/x86_64-linux-gnu/xtables" iptables -S KUBE-ROUTER-FORWARD
}

dns_manifests() {
  cat <<E
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
        }
        cache 5
        loadbalance
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      containers:
      - name: coredns
        image: localhost/coredns:1
        imagePullPolicy: Never
        args: [-conf, /etc/coredns/Corefile]
        resources: {requests: {cpu: 20m, memory: 32Mi}}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        volumeMounts: [{name: c, mountPath: /etc/coredns}]
      volumes: [{name: c, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $DNS_IP
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
E
}

fetch_debs; build; build_router
[ "${1:-}" = fetch ] && exit 0
start
kctl get nodes -o wide
say "up. KUBECONFIG=$RUN/admin.conf"

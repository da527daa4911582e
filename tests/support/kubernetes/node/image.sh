#!/bin/bash
# image.sh: build container images from Dockerfiles without Docker and without a registry, and import them.
#   image.sh base                 the base image (Debian + Python), tagged docker.io/library/debian:bookworm-slim
#   image.sh build TAG DIR [ARG]  a Dockerfile (buildah --isolation chroot), then import into the cluster's containerd
#   image.sh save TAG FILE        the image as a docker archive
#   image.sh drop TAG             forget it
# The packages that up.sh unpacked are laid over /usr in a mount namespace of buildah's own: nothing is installed.
set -euo pipefail
H=${K8S_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/lakewarden/kubernetes/node}; C=$H/cache; R=$C/root; I=$C/images; RUN=$H/run
SUITE=${SUITE:-bookworm}; PKGS=${PKGS:-python3,ca-certificates}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1735689600}   # all times in images: the same sources make the same image
mkdir -p "$I/conf" "$I/tmp" "$I/base"; export TMPDIR=$I/tmp
echo '{"default":[{"type":"insecureAcceptAnything"}]}' > "$I/conf/policy.json"
printf 'unqualified-search-registries = []\nshort-name-mode = "permissive"\n' > "$I/conf/registries.conf"
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/storage"\nrunroot = "%s/runroot"\n' "$I" "$I" > "$I/conf/storage.conf"
export CONTAINERS_STORAGE_CONF=$I/conf/storage.conf CONTAINERS_REGISTRIES_CONF=$I/conf/registries.conf
over() { unshare -m bash -c 'mount -t overlay overlay -o lowerdir='"$R"'/usr:/usr /usr && exec "$@"' over "$@"; }
bud() { over buildah bud --isolation chroot --signature-policy "$I/conf/policy.json" --pull-never --layers \
  --timestamp "$SOURCE_DATE_EPOCH" --build-arg "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" "$@"; }
t0=$(date +%s%N); took() { local d=$((($(date +%s%N) - t0) / 100000000)); printf '%4d.%ds  %s\n' $((d / 10)) $((d % 10)) "$*"; }

base() {
  local tag=docker.io/library/debian:bookworm-slim
  if [ "$I/base/built" -nt "$I/base/rootfs.tar" ] && over buildah inspect --type image "$tag" >/dev/null 2>&1; then return; fi
  if [ ! -s "$I/base/rootfs.tar" ]; then
    # the machine's own package sources, whatever they are: no address is written here
    local src=/etc/apt/sources.list.d/debian.sources; [ -e $src ] || src=/etc/apt/sources.list
    over mmdebstrap --quiet --mode=root --variant=minbase --include="$PKGS" --dpkgopt='path-exclude=/usr/share/doc/*' \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' "$SUITE" "$I/base/rootfs.new.tar" "$src"
    mv "$I/base/rootfs.new.tar" "$I/base/rootfs.tar"
    took "root file system: $(stat -c %s "$I/base/rootfs.tar") bytes"
  fi
  printf 'FROM scratch\nADD rootfs.tar /\nCMD ["bash"]\n' > "$I/base/Dockerfile"
  bud -t "$tag" "$I/base" >/dev/null 2>&1
  touch "$I/base/built"
  took "base image"
}
build() { # tag, folder, further buildah arguments
  local tag=$1 dir=$2; shift 2
  bud "$@" -t "$tag" "$dir" > "$I/build.log" 2>&1 || { tail -20 "$I/build.log"; return 1; }
  took "$tag built"
  rm -f "$I/out.tar"
  over buildah push -q --signature-policy "$I/conf/policy.json" "$tag" "docker-archive:$I/out.tar:$tag"
  if [ -S "$RUN/containerd.sock" ]; then
    "$R/usr/bin/ctr" -a "$RUN/containerd.sock" -n k8s.io images import "$I/out.tar" >/dev/null
    took "$tag imported: $(stat -c %s "$I/out.tar") bytes"
  fi
  rm -f "$I/out.tar"
}
save() { rm -f "$2"; over buildah push -q --signature-policy "$I/conf/policy.json" "$1" "docker-archive:$2:$1"; }
case "${1:-}" in
  base) base ;;
  save) shift; save "$@" ;;
  drop) over buildah rmi "$2" >/dev/null ;;
  build) shift; build "$@" ;;
  *) echo "image.sh base | build TAG DIR [ARGUMENTS...] | save TAG FILE | drop TAG" >&2; exit 2 ;;
esac

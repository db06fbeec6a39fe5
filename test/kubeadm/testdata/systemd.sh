# The job of the emulated machine: a cluster of one node, made by kubeadm, whose kubelet is the node as a service of
# systemd with cgroup v2. Its directory is /out.
set -eu
export PATH=/programs/kubernetes:/programs/containerd:$PATH KUBECONFIG=/etc/kubernetes/admin.conf

show() { # writes the logs when the job has failed
	code=$?
	[ $code = 0 ] && exit 0
	journalctl --no-pager -u kubelet -u containerd | tail -n 60 || true
	for app in kube-proxy kube-dns; do
		kubectl describe pods -n kube-system -l k8s-app=$app | tail -n 30 || true
		kubectl logs -n kube-system -l k8s-app=$app --tail=20 || true
	done
	exit "$code"
}
trap show EXIT

begun=$(date +%s)
step() { echo "$(($(date +%s) - begun)) s: $1"; }

# until_ready WHAT COMMAND: waits until the command succeeds.
until_ready() {
	end=$(($(date +%s) + 240))
	until sh -c "$2" 2>/dev/null; do
		[ "$(date +%s)" -lt $end ] || { echo "after 4 minutes not: $1"; exit 1; }
		sleep 1
	done
	step "$1"
}

healthy="busybox wget -q -O /dev/null http://127.0.0.1:10248/healthz 2>/dev/null"
containers() { ctr --namespace k8s.io tasks list --quiet | sort; }

modprobe nf_conntrack # kube-proxy sets its limit; its image has no modprobe
mkdir -p /etc/containerd /etc/cni/net.d /opt/cni /etc/systemd/system/kubelet.service.d
cp /job/containerd.toml /etc/containerd/config.toml
cp /job/10-lab.conflist /etc/cni/net.d/
ln -s /usr/lib/cni /opt/cni/bin
cp /job/containerd.service /etc/systemd/system/

# The files of the package kubeparts-kubelet.
cp /job/kubelet /usr/bin/kubelet
cp /job/kubelet.service /etc/systemd/system/
cp /job/10-kubeadm.conf /etc/systemd/system/kubelet.service.d/
systemctl daemon-reload
systemctl enable --now containerd
until_ready "containerd answers" "ctr version >/dev/null 2>&1"
for image in /job/images/*; do
	ctr --namespace k8s.io images import --local "$image" >/dev/null
done
while read -r tag; do
	ctr --namespace k8s.io images tag KUBERNETES "$tag" >/dev/null
done </job/tags
step "the images are imported"

kubeadm init --config /job/init.yaml --ignore-preflight-errors=all >/out/init.log 2>&1 || { cat /out/init.log; exit 1; }
step "kubeadm init"
until_ready "the node is ready" "kubectl get nodes --no-headers | grep -qw Ready"
until_ready "the mirror pods are ready" 'test "$(kubectl get pods -n kube-system -l tier=control-plane --no-headers | grep -c 1/1)" = 4'
until_ready "kube-proxy is ready" "kubectl get pods -n kube-system -l k8s-app=kube-proxy --no-headers | grep -q 1/1"
until_ready "CoreDNS is ready" 'test "$(kubectl get pods -n kube-system -l k8s-app=kube-dns --no-headers | grep -c 1/1)" = 2'
kubectl get nodes,pods -A -o wide

# The cgroups are slices and scopes of systemd, below those of the classes of pods.
grep -qx '0::/system.slice/kubelet.service' /proc/"$(busybox pidof kubelet)"/cgroup
for unit in kubepods.slice kubepods-burstable.slice kubepods-besteffort.slice; do
	[ "$(systemctl show -P ActiveState $unit)" = active ]
done
for program in kube-apiserver etcd kube-scheduler kube-controller-manager; do
	pid=$(pgrep -f "^$program ")
	grep -q '^0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod[0-9a-f_]*.slice/cri-containerd-[0-9a-f]*.scope$' "/proc/$pid/cgroup"
done
step "the cgroups of the control plane are those of systemd"

before=$(containers)
systemctl restart kubelet # returns when the kubelet has notified systemd
step "the kubelet has started again"
until_ready "the kubelet is healthy" "$healthy"
[ "$(containers)" = "$before" ]
kill -9 "$(busybox pidof kubelet)"
until_ready "the killed kubelet was started again by systemd" "$healthy"
[ "$(containers)" = "$before" ]
[ "$(systemctl show -P NRestarts kubelet)" = 1 ]
step "no container was started again"

kubeadm reset --force >/out/reset.log 2>&1 || { cat /out/reset.log; exit 1; }
[ -z "$(containers)" ]
[ "$(systemctl is-active kubelet)" = inactive ]
step "kubeadm reset"

//go:build linux

package kubeadm

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// endpoint is the address of the API servers, which the machine of one of them has.
const endpoint = "198.51.100.10"

// joinControlPlane is added to joinConfig. Without the taint of control planes pods of others are placed on the node.
const joinControlPlane = `  taints: []
controlPlane:
  localAPIEndpoint: {advertiseAddress: 198.51.100.2}
  certificateKey: %s
`

// late is a pod that is created while one of the API servers is away.
const late = `apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  nodeName: two
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: ` + lab.Busybox + `, command: [sleep, "1000000"]}]
`

// secondControlPlane joins two with the certificates of one.
func secondControlPlane(one, two *machine) {
	output := one.sh("kubeadm init phase upload-certs --upload-certs --config " + one.file("init.yaml"))
	key := output[strings.LastIndex(output, "\n")+1:]
	two.write("join.yaml", joinConfig+fmt.Sprintf(joinControlPlane, key))
	one.t.Log(two.sh("kubeadm join --config " + two.file("join.yaml") + " --ignore-preflight-errors=all"))
	// Its kubelet has requested the certificate from the API server that is one of its static pods.
	assert.Contains(one.t, two.sh("cat /etc/kubernetes/kubelet.conf"), "https://"+two.address+":6443")
	bothControlPlanes(one)
	assert.Equal(one.t, "one two", one.etcdMembers())
	for _, m := range []*machine{one, two} {
		assert.Equal(one.t, "ok", two.sh("kubectl --server https://"+m.address+":6443 get --raw /readyz"))
		assert.Contains(one.t, one.sh("kubectl get endpointslices kubernetes -o jsonpath='{.endpoints[*].addresses}'"), m.address)
	}
	one.t.Log(one.sh("kubectl get nodes,pods -A -o wide"))
}

// bothControlPlanes waits until both nodes and the pods of both control planes are ready.
func bothControlPlanes(m *machine) {
	m.t.Helper()
	m.until("both control planes are ready", `
		test "$(kubectl get nodes -l node-role.kubernetes.io/control-plane --no-headers | grep -cw Ready)" = 2 &&
		test "$(kubectl get pods -n kube-system -l tier=control-plane --no-headers | grep -c 1/1)" = 8`)
}

// takeOver removes the API server of one, whose kubelet sees that its manifest is away, and gives its address to two.
func takeOver(one, two *machine) {
	const manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	move := func(from, to *machine) {
		from.sh("ip address delete " + endpoint + "/32 dev wire")
		to.sh("ip address add " + endpoint + "/32 dev wire")
	}
	one.sh("mv " + manifest + " /etc/kubernetes")
	one.until("the API server has exited", "! curl -sk -m 2 https://"+one.address+":6443/livez")
	move(one, two)
	one.write("late.yaml", late)
	one.sh("kubectl apply -f " + one.file("late.yaml"))
	one.until("a pod runs by the other API server", "kubectl wait --for=condition=Ready --timeout=30s pod/late")
	move(two, one)
	one.sh("mv /etc/kubernetes/kube-apiserver.yaml " + manifest)
	bothControlPlanes(one)
}

// resetControlPlane removes two, and its member of etcd.
func resetControlPlane(one, two *machine) {
	one.sh("kubectl drain two --ignore-daemonsets --delete-emptydir-data --force --timeout=2m")
	one.t.Log(two.sh("kubeadm reset --force"))
	assert.Empty(one.t, two.containers())
	assert.Equal(one.t, "one", one.etcdMembers())
	one.until("the API server uses the remaining member", "kubectl delete node two")
	assert.Equal(one.t, "one", one.sh("kubectl get nodes -o jsonpath='{.items[*].metadata.name}'"))
}

// etcdMembers returns the names of the members of etcd, sorted.
func (m *machine) etcdMembers() string {
	m.t.Helper()
	return m.sh(`cd /etc/kubernetes/pki/etcd
		curl -sSf --cacert ca.crt --cert healthcheck-client.crt --key healthcheck-client.key --data '{}' https://127.0.0.1:2379/v3/cluster/member/list |
		grep -o '"name":"[^"]*"' | cut -d '"' -f 4 | sort | xargs`)
}

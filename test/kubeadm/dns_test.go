//go:build linux

package kubeadm

import (
	"fmt"

	"github.com/stretchr/testify/assert"
)

// client is a pod of a node that uses the cluster's DNS, as pods do unless they specify otherwise. Its programs are
// linked dynamically: wget of Debian's busybox, which is not, crashes when it resolves a name.
const client = `apiVersion: v1
kind: Pod
metadata: {name: client-%[1]s}
spec:
  nodeName: %[1]s
  containers: [{name: client, image: ` + agnhostImage + `}]
`

// names resolves the name of the Service web in pods of both machines.
func names(one, two *machine) {
	// Both replicas were placed when there was one node only. New ones prefer nodes without others.
	one.sh(`kubectl -n kube-system scale deployment/coredns --replicas=0
		kubectl -n kube-system wait --for=delete pods -l k8s-app=kube-dns --timeout=2m
		kubectl -n kube-system scale deployment/coredns --replicas=2`)
	one.until("CoreDNS is ready", "kubectl -n kube-system rollout status deployment/coredns --timeout=30s")
	assert.Equal(one.t, "one\ntwo", one.sh(`kubectl get pods -n kube-system -l k8s-app=kube-dns -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort`))
	address := one.sh("kubectl get service web -o jsonpath='{.spec.clusterIP}'")
	for _, m := range []*machine{one, two} {
		pod := "client-" + m.name
		one.write("client.yaml", fmt.Sprintf(client, m.name))
		one.sh("kubectl apply -f " + one.file("client.yaml"))
		one.until("the client runs", "kubectl wait --for=condition=Ready --timeout=30s pod/"+pod)
		resolv := one.sh("kubectl exec " + pod + " -- cat /etc/resolv.conf")
		assert.Contains(one.t, resolv, "nameserver 10.96.0.10")
		assert.Contains(one.t, resolv, "search default.svc.cluster.local svc.cluster.local cluster.local")
		assert.Contains(one.t, one.until("the name is resolved", "kubectl exec "+pod+" -- getent hosts web.default.svc.cluster.local"), address)
		for _, name := range []string{"web.default.svc.cluster.local", "web"} {
			assert.Contains(one.t, one.until("the service answers by its name", "kubectl exec "+pod+" -- curl -sSf -m 5 http://"+name), "web-")
		}
	}
	one.sh("kubectl delete pods client-one client-two --grace-period=0 --force")
}

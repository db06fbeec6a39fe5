//go:build linux

package kubeadm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

const token = "abcdef.0123456789abcdef"

// clusterConfig is what kubeadm init reads. What differs from the defaults is what this machine requires: cgroup v1
// without systemd, swap, and a disk that may be nearly full.
const clusterConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: ` + token + `}]
localAPIEndpoint: {advertiseAddress: 198.51.100.1}
nodeRegistration:
  name: one
  taints: []
  kubeletExtraArgs: [{name: node-ip, value: 198.51.100.1}]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ` + lab.KubernetesVersion + `
controlPlaneEndpoint: ` + endpoint + `:6443
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: 50Mi}
`

const joinConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: "` + endpoint + `:6443", token: ` + token + `, unsafeSkipCAVerification: true}}
nodeRegistration:
  name: two
  kubeletExtraArgs: [{name: node-ip, value: 198.51.100.2}]
`

// web is a Deployment with a pod on each node.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]
      containers:
      - name: web
        image: ` + lab.Busybox + `
        command: [sh, -c, "echo started; mkdir /www; hostname >/www/index.html; exec httpd -f -p 80 -h /www"]
        readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// ready succeeds when all of this number of nodes are ready.
const ready = `test "$(kubectl get nodes --no-headers | grep -cw Ready)" = %d`

func TestIntegrationKubeadm(t *testing.T) {
	lab.Need(t, "root", "containerd", "kubernetes", "kubectl", "iptables")
	require.NotEmpty(t, os.Getenv("KUBEPARTS_KUBELET"), "the complete node")
	files := append(archives(t), suiteArchives(t)...)
	one := newMachine(t, "one", "198.51.100.1", "10.244.1.0/24", files)
	two := newMachine(t, "two", "198.51.100.2", "10.244.2.0/24", files)
	link(t, one, two)
	one.sh("ip address add " + endpoint + "/32 dev wire")

	one.steps(
		step{"init", func() {
			one.write("init.yaml", clusterConfig)
			assert.ElementsMatch(t, append(tags(), pauseImage, coreDNSImage), strings.Fields(one.sh("kubeadm config images list --config "+one.file("init.yaml"))))
			t.Log(one.sh("kubeadm init --config " + one.file("init.yaml") + " --ignore-preflight-errors=all"))
			one.until("the node is ready", fmt.Sprintf(ready, 1))
			one.until("the mirror pods are ready", `test "$(kubectl get pods -n kube-system -l tier=control-plane --no-headers | grep -c 1/1)" = 4`)
		}},
		step{"the client certificate is rotated", func() { // K2
			// kubeadm's configuration of the node refers to the certificate that the kubelet renews.
			assert.Contains(t, one.sh("cat /etc/kubernetes/kubelet.conf"), "/var/lib/kubelet/pki/kubelet-client-current.pem")
			one.until("the certificate was requested by the kubelet", "kubectl get csr | grep system:node:one | grep Approved,Issued")
		}},
		step{"the kubelet starts again without the bootstrap file", func() { one.restartKubelet() }}, // K1
		step{"join", func() {
			two.write("join.yaml", joinConfig)
			t.Log(two.sh("kubeadm join --config " + two.file("join.yaml") + " --ignore-preflight-errors=all"))
			one.until("both nodes are ready", fmt.Sprintf(ready, 2))
			assert.NotContains(t, two.sh("ls /etc/kubernetes"), "bootstrap-kubelet.conf")
		}},
		step{"the joined kubelet starts again", func() { two.restartKubelet() }},
		step{"a deployment over both nodes", func() {
			one.write("web.yaml", web)
			one.sh("kubectl apply -f " + one.file("web.yaml"))
			one.until("the deployment is available", "kubectl rollout status deployment/web --timeout=30s")
			assert.Equal(t, "one two", strings.Join(strings.Fields(one.sh(`kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort`)), " "))
			for _, pod := range strings.Fields(one.sh("kubectl get pods -l app=web -o name")) {
				assert.Equal(t, "started", one.sh("kubectl logs "+pod))
				assert.Equal(t, pod, "pod/"+one.sh("kubectl exec "+pod+" -- hostname"))
			}
			for _, address := range strings.Fields(one.sh("kubectl get pods -l app=web -o jsonpath='{.items[*].status.podIP}'")) {
				for _, m := range []*machine{one, two} {
					assert.Contains(t, m.until("a pod answers", "curl -sSf -m 5 http://"+address), "web-")
				}
			}
		}},
		step{"the service, by kube-proxy", func() {
			one.until("kube-proxy runs on both nodes", `test "$(kubectl get pods -n kube-system -l k8s-app=kube-proxy --no-headers | grep -c 1/1)" = 2`)
			address := one.sh("kubectl get service web -o jsonpath='{.spec.clusterIP}'")
			for _, m := range []*machine{one, two} {
				assert.Contains(t, m.until("the service answers", "curl -sSf -m 5 http://"+address), "web-")
			}
		}},
		step{"names", func() { names(one, two) }},
		step{"tests of conformance", func() { one.conformance() }},
		step{"upgrade", func() {
			before := [][]string{one.containers(), two.containers()}
			t.Log(one.sh("kubeadm upgrade apply --yes --force --ignore-preflight-errors=all " + lab.KubernetesVersion))
			t.Log(two.sh("kubeadm upgrade node --ignore-preflight-errors=all"))
			one.restartKubelet()
			two.restartKubelet()
			assert.Subset(t, one.containers(), before[0], "a container was started again")
			assert.Subset(t, two.containers(), before[1], "a container was started again")
		}},
		step{"the way back to the kubelet and here again", func() {
			before := two.containers()
			for _, program := range []string{realKubelet(t), os.Getenv("KUBEPARTS_KUBELET")} {
				two.sh("systemctl stop kubelet")
				two.useKubelet(program)
				two.sh("systemctl start kubelet")
				one.until("the node is ready", fmt.Sprintf(ready, 2))
				two.until("it is healthy", "curl -sSf -m 5 http://127.0.0.1:10248/healthz")
				time.Sleep(5 * time.Second) // a restart of a container would take as long
				assert.Subset(t, two.containers(), before, "%s has started a container again", program)
			}
		}},
		step{"reset", func() {
			one.sh("kubectl drain two --ignore-daemonsets --delete-emptydir-data --force --timeout=2m && kubectl delete node two")
			t.Log(two.sh("kubeadm reset --force"))
			assert.Empty(t, two.containers())
			assert.Contains(t, tail(filepath.Join(two.dir, "systemctl.log"), 10), "stop kubelet")
		}},
		step{"a second control plane", func() { secondControlPlane(one, two) }},
		step{"the second API server takes over", func() { takeOver(one, two) }},
		step{"reset of a control plane", func() { resetControlPlane(one, two) }},
	)
}

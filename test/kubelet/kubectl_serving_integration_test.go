package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectlServing: a node requests its serving certificate, the request is approved, and
// from then on who trusts the cluster's CA trusts the node (sv-2).
func kubectlServing(d desk) {
	a := newAgent(d.t, "process")
	a.flags = []string{
		"--kubeconfig=" + d.control.NodeKubeconfig("signed"), "--hostname-override=signed", "--port=-1", "--healthz-port=-1", "--client-ca-file=" + d.caFile(d.control),
		"--register-with-taints=for=processes:NoSchedule", "--rotate-server-certificates",
	}
	a.start()
	d.nodeReady("signed")
	node, err := d.api.CoreV1().Nodes().Get(d.t.Context(), "signed", metav1.GetOptions{})
	require.NoError(d.t, err)
	at := net.JoinHostPort(node.Status.Addresses[0].Address, strconv.Itoa(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)))
	roots := x509.NewCertPool()
	require.True(d.t, roots.AppendCertsFromPEM(d.control.CA()))
	_, err = tls.Dial("tcp", at, &tls.Config{RootCAs: roots})
	require.Error(d.t, err, "no certificate was signed")

	var shown *x509.Certificate
	d.until("the node shows a certificate of the cluster's", func() error {
		for line := range strings.Lines(d.ok("get", "csr", "--no-headers")) {
			if strings.Contains(line, "kubernetes.io/kubelet-serving") && strings.Contains(line, "system:node:signed") && strings.Contains(line, "Pending") {
				d.ok("certificate", "approve", strings.Fields(line)[0])
			}
		}
		conn, err := tls.Dial("tcp", at, &tls.Config{RootCAs: roots})
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		defer conn.Close()
		shown = conn.ConnectionState().PeerCertificates[0]
		return nil
	})
	assert.Equal(d.t, "system:node:signed", shown.Subject.CommonName)
	assert.Equal(d.t, []string{"system:nodes"}, shown.Subject.Organization)
	// Who asks how long it is good for is told.
	all, err := a.families("/metrics")
	require.NoError(d.t, err)
	assert.Positive(d.t, sample(all["kubelet_certificate_manager_server_ttl_seconds"]))
}

// kubectlAnonymous: a node with anonymous access and no client CA answers an API server,
// which has a client certificate for all nodes.
func kubectlAnonymous(d desk) {
	a := newAgent(d.t, "process")
	file := filepath.Join(a.dir, "kubelet.yaml")
	require.NoError(d.t, os.WriteFile(file, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+
		"authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\nevictionHard: {} # however full the disk is\n"), 0o600))
	a.flags = []string{
		"--config=" + file, "--kubeconfig=" + d.control.NodeKubeconfig("open"), "--hostname-override=open", "--port=-1", "--healthz-port=-1",
		"--register-with-taints=for=processes:NoSchedule",
	}
	a.start()
	d.nodeReady("open")
	pod := spec("echo hello; trap 'exit 0' TERM; sleep 3600 & wait")
	pod.NodeName = "open"
	pod.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	d.make("anonymous", pod)
	d.untilPhase("anonymous", v1.PodRunning)
	d.until("its log", func() error {
		if was := d.with("", "logs", "anonymous"); was.out != "hello\n" {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	assert.Equal(d.t, "here\n", d.ok("exec", "anonymous", "--", "echo", "here"))
	d.ok("delete", "pod", "anonymous", "--wait", "--timeout="+patience.String())
}

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectlServing: a node asks for the certificate that it shows, somebody approves, and
// from then on who trusts the cluster's CA trusts the node (sv-2).
func kubectlServing(d desk) {
	a := newAgent(d.t, "process")
	a.flags = []string{
		"--kubeconfig=" + d.control.NodeKubeconfig("signed"), "--node-name=signed", "--port=-1", "--healthz-port=-1", "--client-ca-file=" + d.caFile(d.control),
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
	require.Error(d.t, err, "nobody has signed anything")

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

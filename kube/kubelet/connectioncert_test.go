package kubelet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// nodeCertificate returns a client certificate of the node n1, and its key.
func nodeCertificate(t *testing.T, expires time.Time) (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: expires,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// kubeadmCluster returns the cluster of a node with the flags of kubeadm's drop-in
// 10-kubeadm.conf, whose bootstrap kubeconfig does not exist (any more).
func kubeadmCluster(t *testing.T, user clientcmdapi.AuthInfo) Cluster {
	dir := t.TempDir()
	c := Cluster{Kubeconfig: filepath.Join(dir, "kubelet.conf"), BootstrapKubeconfig: filepath.Join(dir, "bootstrap-kubelet.conf"), CertDir: filepath.Join(dir, "pki")}
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://127.0.0.1:1"}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": &user}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, c.Kubeconfig))
	return c
}

// kubeadm init embeds the certificate of the node of a control plane. kubeadm join deletes
// the bootstrap kubeconfig after the first start.
func TestANodeOfKubeadmStartsWithoutItsBootstrapKubeconfig(t *testing.T) {
	cert, key := nodeCertificate(t, time.Now().Add(24*time.Hour))
	t.Run("control plane", func(t *testing.T) {
		cfg := standalone(t, "rotateCertificates: true\n")
		cfg.Cluster = kubeadmCluster(t, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
		conn, err := stores.NewConnection(t.Context(), newBase(t, cfg))
		require.NoError(t, err)
		assert.NotNil(t, conn.Expires, "the certificate is renewed")
		assert.NotEmpty(t, conn.Run)
		data, err := os.ReadFile(filepath.Join(cfg.Cluster.CertDir, "kubelet-client-current.pem"))
		require.NoError(t, err, "kubeadm refers to this file if it exists")
		assert.Equal(t, string(cert)+string(key), string(data))
		require.NoError(t, conn.Close())
	})
	t.Run("worker", func(t *testing.T) {
		cfg := standalone(t, "rotateCertificates: true\n")
		cfg.Cluster = kubeadmCluster(t, clientcmdapi.AuthInfo{})
		current := filepath.Join(cfg.Cluster.CertDir, "kubelet-client-current.pem")
		cfg.Cluster.Kubeconfig = kubeadmCluster(t, clientcmdapi.AuthInfo{ClientCertificate: current, ClientKey: current}).Kubeconfig
		require.NoError(t, os.MkdirAll(cfg.Cluster.CertDir, 0o700))
		require.NoError(t, os.WriteFile(current, append(cert, key...), 0o600))
		conn, err := stores.NewConnection(t.Context(), newBase(t, cfg))
		require.NoError(t, err)
		assert.NotNil(t, conn.Expires)
		require.NoError(t, conn.Close())
	})
	t.Run("without rotation", func(t *testing.T) {
		cfg := standalone(t, "")
		cfg.Cluster = kubeadmCluster(t, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
		conn, err := stores.NewConnection(t.Context(), newBase(t, cfg))
		require.NoError(t, err)
		assert.Nil(t, conn.Expires)
		assert.NoFileExists(t, filepath.Join(cfg.Cluster.CertDir, "kubelet-client-current.pem"))
		require.NoError(t, conn.Close())
	})
}

func TestAnExpiredEmbeddedCertificateEndsTheStart(t *testing.T) {
	cert, key := nodeCertificate(t, time.Now().Add(-time.Hour))
	for _, lines := range []string{"", "rotateCertificates: true\n"} {
		for _, bootstrap := range []bool{false, true} {
			cfg := standalone(t, lines)
			cfg.Cluster = kubeadmCluster(t, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
			if !bootstrap {
				cfg.Cluster.BootstrapKubeconfig = ""
			}
			_, err := stores.NewConnection(t.Context(), newBase(t, cfg))
			assert.ErrorContains(t, err, "client certificate of system:node:n1 expired at ", "%q, bootstrap kubeconfig: %v", lines, bootstrap)
		}
	}
}

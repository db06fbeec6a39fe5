package client_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

var _ certificate.Requests = (*client.PodCertificates)(nil)

// A certifiedNode mounts podCertificate volumes with the requests of an API server.
type certifiedNode struct {
	*volume.Manager
	root string

	mu     sync.Mutex
	events []string
}

func newCertifiedNode(t *testing.T, api kubernetes.Interface, node metav1.OwnerReference) *certifiedNode {
	t.Helper()
	n := &certifiedNode{root: t.TempDir()}
	requests, err := client.NewPodCertificates(client.PodCertificatesConfig{
		Client: api, NodeName: node.Name, Node: func() (metav1.OwnerReference, bool) { return node, true },
		Changed: func(kind, namespace, name string) { n.ObjectChanged(kind, namespace, name) },
	})
	require.NoError(t, err)
	certificates, err := certificate.New(certificate.Config{Requests: requests})
	require.NoError(t, err)
	mounter := new(volumetest.Mounter)
	plugin, err := projected.New(projected.Config{Certificates: certificates, Tmpfs: &emptydir.Tmpfs{Mounter: mounter}})
	require.NoError(t, err)
	n.Manager, err = volume.New(volume.Config{
		RootDir: n.root, Plugins: []volume.Plugin{plugin}, Mounter: mounter, StatsPeriod: -1,
		Record: func(e runtime.Event) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.events = append(n.events, e.Reason+": "+e.Message)
		},
	})
	require.NoError(t, err)
	running(t, n.Run)
	running(t, requests.Run)
	return n
}

// recorded returns and deletes the events.
func (n *certifiedNode) recorded() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	events := strings.Join(n.events, "\n")
	n.events = nil
	return events
}

// certifiedPod returns a pod with a podCertificate volume.
func certifiedPod(node string) *v1.Pod {
	pod := newPod("web")
	pod.UID, pod.Spec.NodeName, pod.Spec.EnableServiceLinks = "web", node, new(false)
	pod.Spec.Volumes = []v1.Volume{{Name: "tls", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{PodCertificate: &v1.PodCertificateProjection{SignerName: "example.com/pods", KeyType: "ECDSAP256", CredentialBundlePath: "bundle.pem"}},
	}}}}}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "tls", MountPath: "/tls"}}
	return pod
}

// A pemSigner is a signer of a cluster.
type pemSigner struct {
	key  crypto.Signer
	root *x509.Certificate
}

func newSigner(t *testing.T) *pemSigner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	require.NoError(t, err)
	root, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return &pemSigner{key, root}
}

// issue issues a certificate for a request, for 24 hours.
func (s *pemSigner) issue(t *testing.T, api kubernetes.Interface, request *certificatesv1.PodCertificateRequest) {
	t.Helper()
	csr, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	require.NoError(t, err)
	begin := time.Now().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: request.Spec.PodName},
		NotBefore: begin, NotAfter: begin.Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.root, csr.PublicKey, s.key)
	require.NoError(t, err)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: begin.Add(d)} }
	request.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue, Reason: "Issued", LastTransitionTime: metav1.Now()}},
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		NotBefore:        at(0), BeginRefreshAt: at(12 * time.Hour), NotAfter: at(24 * time.Hour),
	}
	update(t, api, request)
}

func update(t *testing.T, api kubernetes.Interface, request *certificatesv1.PodCertificateRequest) {
	t.Helper()
	_, err := api.CertificatesV1().PodCertificateRequests(request.Namespace).UpdateStatus(t.Context(), request, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// pendingRequests returns the requests without a condition.
func pendingRequests(t *testing.T, api kubernetes.Interface, namespace string) (pending []certificatesv1.PodCertificateRequest) {
	t.Helper()
	list, err := api.CertificatesV1().PodCertificateRequests(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, r := range list.Items {
		if len(r.Status.Conditions) == 0 {
			pending = append(pending, r)
		}
	}
	return pending
}

// A certifiedServer is a node with an API server in memory.
type certifiedServer struct {
	*certifiedNode
	server *apitest.Server
	api    kubernetes.Interface
	signer *pemSigner
	pod    *v1.Pod
}

func newCertifiedServer(t *testing.T) *certifiedServer {
	t.Helper()
	s := &certifiedServer{server: new(apitest.Server), signer: newSigner(t), pod: certifiedPod("node-1")}
	s.api = connect(t, s.server).API
	s.server.Put(&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.pod.Namespace, Name: "default", UID: "account"}})
	s.certifiedNode = newCertifiedNode(t, s.api, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "node"})
	return s
}

func (s *certifiedServer) pending(t *testing.T) *certificatesv1.PodCertificateRequest {
	t.Helper()
	synctest.Wait()
	pending := pendingRequests(t, s.api, s.pod.Namespace)
	require.Len(t, pending, 1)
	return &pending[0]
}

// vol-58: a certificate is mounted when it is issued, and replaced while it is mounted.
func TestACertificateIsMountedAndRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCertifiedServer(t)
		assert.Zero(t, s.server.Watches("podcertificaterequests"), "nothing is watched before it is needed")
		mounted := make(chan error)
		go func() { _, err := s.Mount(t.Context(), s.pod); mounted <- err }()
		request := s.pending(t)
		assert.Equal(t, 1, s.server.Watches("podcertificaterequests"))
		request.Spec.StubPKCS10Request, request.Spec.MaxExpirationSeconds = nil, nil
		assert.Equal(t, certificatesv1.PodCertificateRequestSpec{
			SignerName: "example.com/pods", PodName: "web", PodUID: "web", ServiceAccountName: "default", ServiceAccountUID: "account", NodeName: "node-1", NodeUID: "node",
		}, request.Spec)
		assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "web"}}, request.OwnerReferences)

		time.Sleep(time.Minute)
		begin := time.Now()
		s.signer.issue(t, s.api, s.pending(t))
		require.NoError(t, <-mounted)
		assert.Less(t, time.Since(begin), time.Second, "the certificate ends the back-off")
		assert.Contains(t, s.recorded(), `MountVolume.SetUp failed for volume "tls" : credential bundle is not issued yet`)
		file := filepath.Join(s.root, "pods/web/volumes/kubernetes.io~projected/tls/bundle.pem")
		first, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = tls.X509KeyPair(first, first)
		require.NoError(t, err, "the key belongs to the certificate")

		time.Sleep(12*time.Hour - 2*time.Minute)
		assert.Empty(t, pendingRequests(t, s.api, s.pod.Namespace))
		time.Sleep(8 * time.Minute)
		request = s.pending(t)
		same, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, first, same)
		s.signer.issue(t, s.api, request)
		synctest.Wait()
		second, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = tls.X509KeyPair(second, second)
		require.NoError(t, err)
		assert.False(t, bytes.Contains(second, first[:100]), "the key is new")
		assert.Empty(t, s.recorded())

		require.NoError(t, s.Unmount(t.Context(), s.pod))
		assert.NoFileExists(t, file)
	})
}

func TestADeniedCertificateFailsTheMount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCertifiedServer(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		mounted := make(chan error)
		go func() { _, err := s.Mount(ctx, s.pod); mounted <- err }()
		request := s.pending(t)
		request.Status.Conditions = []metav1.Condition{{Type: "Denied", Status: metav1.ConditionTrue, Reason: "UnsupportedKeyType", Message: "use RSA", LastTransitionTime: metav1.Now()}}
		update(t, s.api, request)
		require.ErrorContains(t, <-mounted, `PodCertificateRequest was permanently denied: reason="UnsupportedKeyType" message="use RSA"`)
		events := s.recorded()
		assert.Equal(t, 1, strings.Count(events, "Denied: PodCertificateRequest prod/"+request.Name+` was denied, reason="UnsupportedKeyType", message="use RSA"`), events)
		assert.Contains(t, events, "FailedMount: MountVolume.SetUp failed")
		assert.Empty(t, pendingRequests(t, s.api, s.pod.Namespace))
	})
}

func TestARequestNeedsItsNodeAndServiceAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(apitest.Server)
		known := false
		p, err := client.NewPodCertificates(client.PodCertificatesConfig{
			Client: connect(t, server).API, NodeName: "node-1", Node: func() (metav1.OwnerReference, bool) { return metav1.OwnerReference{Name: "node-1"}, known },
		})
		require.NoError(t, err)
		create := func() error {
			_, err := p.CreatePodCertificateRequest(t.Context(), certifiedPod("node-1"), certificatesv1.PodCertificateRequestSpec{})
			return err
		}
		require.EqualError(t, create(), "client: the Node object is not known yet")
		known = true
		require.True(t, apierrors.IsNotFound(create()))
		_, err = p.PodCertificateRequest("prod", "req-1")
		require.True(t, apierrors.IsNotFound(err))
	})
}

// A watch that starts over reports what it has missed.
func TestMissedChangesOfRequestsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCertifiedServer(t)
		mounted := make(chan error)
		go func() { _, err := s.Mount(t.Context(), s.pod); mounted <- err }()
		request := s.pending(t)
		s.server.DropWatches()
		s.signer.issue(t, s.api, request)
		s.server.Compact()
		require.NoError(t, <-mounted)
	})
}

func TestPodCertificatesCheckTheirConfig(t *testing.T) {
	good := client.PodCertificatesConfig{Client: connect(t, new(apitest.Server)).API, NodeName: "n", Node: func() (metav1.OwnerReference, bool) { return metav1.OwnerReference{}, false }}
	for want, change := range map[string]func(*client.PodCertificatesConfig){
		"client: PodCertificatesConfig.Client is nil":     func(c *client.PodCertificatesConfig) { c.Client = nil },
		"client: PodCertificatesConfig.Node is nil":       func(c *client.PodCertificatesConfig) { c.Node = nil },
		"client: PodCertificatesConfig.NodeName is empty": func(c *client.PodCertificatesConfig) { c.NodeName = "" },
	} {
		bad := good
		change(&bad)
		_, err := client.NewPodCertificates(bad)
		require.EqualError(t, err, want)
	}
	_, err := client.NewPodCertificates(good)
	require.NoError(t, err)
}

// The API server validates requests and certificates, and permits a node what it needs.
func TestIntegrationACertificateOfARealServer(t *testing.T) {
	c := newCluster(t)
	m, owner := c.connect(t, "certified")
	n := newCertifiedNode(t, m.conn.API, owner)
	pod := certifiedPod(m.node)
	pod.Namespace, pod.UID = m.node, ""
	pod.Spec.AutomountServiceAccountToken = new(false)
	pod, err := c.admin.CoreV1().Pods(m.node).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	mounted := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), pod); mounted <- err }()
	var pending []certificatesv1.PodCertificateRequest
	soon(t, "the request is created", func() bool {
		pending = pendingRequests(t, c.admin, m.node)
		return len(pending) == 1
	})
	assert.Equal(t, pod.UID, pending[0].Spec.PodUID)
	newSigner(t).issue(t, c.admin, &pending[0])
	select {
	case err := <-mounted:
		require.NoError(t, err, n.recorded())
	case <-time.After(patience):
		t.Fatal("the volume is not mounted: ", n.recorded())
	}
	file := filepath.Join(n.root, "pods", string(pod.UID), "volumes/kubernetes.io~projected/tls/bundle.pem")
	bundle, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = tls.X509KeyPair(bundle, bundle)
	require.NoError(t, err)
}

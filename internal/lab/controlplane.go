package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BootstrapToken authenticates a machine that is not a node yet. It only permits
// certificate requests.
const BootstrapToken = "kublab." + "0123456789abcdef"

// ControlPlaneConfig configures a control plane. The zero value is valid.
type ControlPlaneConfig struct {
	// NodeMonitorGrace is the time after the last heartbeat at which a node becomes not
	// ready; zero means 20 s. A node sends a heartbeat every 10 s.
	NodeMonitorGrace time.Duration

	// Bare omits the controllers and the scheduler, as envtest does: only the test changes
	// objects, and pods need no service account.
	Bare bool

	// Controllers are the names of the controllers that run even with Bare, such as
	// "namespace-controller". If empty, Bare omits all of them. It has no effect without
	// Bare.
	Controllers []string

	// Guest is the address of this machine in an emulated one, which is forwarded to 127.0.0.1: the API server
	// listens there. If nil, it listens on a separate loopback address.
	Guest net.IP

	// APIServer are additional arguments of kube-apiserver.
	APIServer []string

	// FeatureGates are enabled in all components of Kubernetes, in addition to the default ones.
	FeatureGates []string
}

// A ControlPlane is a Kubernetes without nodes: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, on a separate loopback address. Nodes have
// only the permissions of nodes (Node authorizer, NodeRestriction). Its methods fail the
// test on errors; they must be called on the test's goroutine.
type ControlPlane struct {
	// URL is the address of the API server. It does not change over restarts.
	URL string

	// Etcd is the URL of etcd, for tests of changes that the API does not permit: to
	// compact the history, or to write with another clock.
	Etcd string

	// Kubeconfig is the kubeconfig file of an administrator.
	Kubeconfig string

	t        testing.TB
	dir      string
	ip       net.IP
	guestURL string // with ControlPlaneConfig.Guest
	ca       *authority
	client   *http.Client

	etcd, api, controllers, scheduler, metrics *child
}

// NewControlPlane starts a control plane that belongs to this test, and waits
// until its API server is ready and nodes may request certificates. The test's cleanup
// removes all of it. If the machine lacks a requirement, the test is skipped or fails as
// with Need.
func NewControlPlane(t testing.TB, cfg ControlPlaneConfig) *ControlPlane {
	t.Helper()
	Need(t, "kubernetes")
	if err := sweepDead(os.TempDir()); err != nil {
		t.Logf("lab: sweep after tests that were killed: %v", err)
	}
	c := &ControlPlane{t: t}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	c.must("make a directory", err)
	c.dir = dir
	t.Cleanup(c.cleanup)
	c.must("prepare", c.prepare(cfg))
	for _, p := range slices.Backward(c.parts()) {
		c.must("start "+p.name, p.start())
		if p == c.api {
			// The others would retry, but log that.
			c.must("start", c.awaitAPI())
		}
	}
	c.must("let nodes ask for certificates", c.allowBootstrap())
	return c
}

// prepare creates the certificates, the files and the commands.
func (c *ControlPlane) prepare(cfg ControlPlaneConfig) (err error) {
	assets, err := kubernetesDir()
	if err != nil {
		return err
	}
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	ports := map[string]string{}
	c.ip = ownLoopback(os.Getpid())
	addresses := []net.IP{c.ip, net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	if cfg.Guest != nil {
		c.ip = net.IPv4(127, 0, 0, 1)
		addresses = append(addresses, cfg.Guest)
	}
	for _, name := range []string{"etcd", "peer", "api", "controllers", "scheduler"} {
		if ports[name], err = freePort(c.ip); err != nil {
			return err
		}
	}
	c.URL = "https://" + net.JoinHostPort(c.ip.String(), ports["api"])
	if cfg.Guest != nil {
		c.guestURL = "https://" + net.JoinHostPort(cfg.Guest.String(), ports["api"])
	}
	c.Etcd = "http://" + net.JoinHostPort(c.ip.String(), ports["etcd"])
	peerURL := "http://" + net.JoinHostPort(c.ip.String(), ports["peer"])

	serving, err := c.ca.server([]string{"kubernetes", "kubernetes.default.svc", "localhost"}, addresses...)
	if err != nil {
		return err
	}
	accountKey, accountPub, err := accountKeys()
	if err != nil {
		return err
	}
	caKey, err := keyPEM(c.ca.key)
	if err != nil {
		return err
	}
	kubelets, err := c.ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	front, err := c.ca.client("front-proxy-client")
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"front.crt": front.cert, "front.key": front.key,
		"audit.json": []byte(auditPolicy),
		"ca.crt":     c.ca.pem, "ca.key": caKey, "kubelets.crt": kubelets.cert, "kubelets.key": kubelets.key, "api.crt": serving.cert, "api.key": serving.key, "sa.key": accountKey, "sa.pub": accountPub,
	} {
		if err := os.WriteFile(c.file(name), data, 0o600); err != nil {
			return err
		}
	}
	if c.Kubeconfig, err = c.write("admin", "lab-admin", "system:masters"); err != nil {
		return err
	}
	controllers, err := c.write("controllers", "system:kube-controller-manager")
	if err != nil {
		return err
	}
	scheduler, err := c.write("scheduler", "system:kube-scheduler")
	if err != nil {
		return err
	}
	if err := c.dial(); err != nil {
		return err
	}

	grace := cfg.NodeMonitorGrace
	if grace == 0 {
		grace = 20 * time.Second
	}
	etcd, err := lookEtcd()
	if err != nil {
		return err
	}
	c.etcd = c.child("etcd", etcd, "--data-dir="+c.file("etcd"), "--listen-client-urls="+c.Etcd, "--advertise-client-urls="+c.Etcd,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL, "--logger=zap", "--log-level=warn",
		// The data is temporary: no need to wait for a busy disk.
		"--unsafe-no-fsync")
	c.api = c.child("kube-apiserver", filepath.Join(assets, "kube-apiserver"), append([]string{
		"--etcd-servers=" + c.Etcd, "--bind-address=" + c.ip.String(), "--secure-port=" + ports["api"],
		// A service must not have a loopback address, such as this one.
		"--advertise-address=" + c.ip.String(), "--endpoint-reconciler-type=none",
		// For requests to nodes, for kubectl exec and logs.
		"--kubelet-client-certificate=" + c.file("kubelets.crt"), "--kubelet-client-key=" + c.file("kubelets.key"), "--kubelet-preferred-address-types=InternalIP",
		// For requests that are forwarded to other APIs, such as that of a metrics-server.
		"--requestheader-client-ca-file=" + c.file("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.file("front.crt"), "--proxy-client-key-file=" + c.file("front.key"),
		"--tls-cert-file=" + c.file("api.crt"), "--tls-private-key-file=" + c.file("api.key"), "--client-ca-file=" + c.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file("sa.pub"), "--service-account-signing-key-file=" + c.file("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--audit-policy-file=" + c.file("audit.json"), "--audit-log-path=" + c.file("audit.log"), "--audit-log-mode=blocking",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
	}, cfg.APIServer...)...)
	var gates []string
	for _, name := range cfg.FeatureGates {
		gates = append(gates, "--feature-gates="+name+"=true")
	}
	c.api.args = append(c.api.args, gates...)
	if cfg.Bare {
		c.api.args = append(c.api.args, "--disable-admission-plugins=ServiceAccount")
		if len(cfg.Controllers) == 0 {
			return nil
		}
	}
	c.controllers = c.child("kube-controller-manager", filepath.Join(assets, "kube-controller-manager"),
		"--kubeconfig="+controllers, "--bind-address="+c.ip.String(), "--secure-port="+ports["controllers"], "--leader-elect=false",
		"--service-account-private-key-file="+c.file("sa.key"), "--root-ca-file="+c.file("ca.crt"), "--use-service-account-credentials=true",
		"--cluster-signing-cert-file="+c.file("ca.crt"), "--cluster-signing-key-file="+c.file("ca.key"),
		"--node-monitor-period=1s", "--node-monitor-grace-period="+grace.String(),
		// The controllers should continue soon after a restart of the API server.
		"--kube-api-qps=200", "--kube-api-burst=400")
	c.controllers.args = append(c.controllers.args, gates...)
	if cfg.Bare {
		c.controllers.args = append(c.controllers.args, "--controllers="+strings.Join(cfg.Controllers, ","))
		return nil
	}
	c.scheduler = c.child("kube-scheduler", filepath.Join(assets, "kube-scheduler"),
		"--kubeconfig="+scheduler, "--bind-address="+c.ip.String(), "--secure-port="+ports["scheduler"], "--leader-elect=false")
	c.scheduler.args = append(c.scheduler.args, gates...)
	return nil
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) child(name, binary string, args ...string) *child {
	return &child{name: name, binary: binary, args: args, log: c.file(name + ".log")}
}

// CA returns the certificate that signs those of the API server and of clients.
func (c *ControlPlane) CA() []byte { return bytes.Clone(c.ca.pem) }

// StopAPI kills the API server. The other components keep running.
func (c *ControlPlane) StopAPI() {
	c.t.Helper()
	c.must("stop the API server", c.api.kill())
}

// StartAPI starts the API server after a StopAPI, and waits until it is ready. The
// controller manager and the scheduler are restarted, because they may take a minute to
// reconnect by themselves.
func (c *ControlPlane) StartAPI() {
	c.t.Helper()
	if c.api.running() {
		c.must("start the API server", errors.New("it runs already"))
	}
	c.must("start the API server", c.api.start())
	c.must("start the API server", c.awaitAPI())
	for _, p := range []*child{c.controllers, c.scheduler} {
		if p != nil {
			c.must("start "+p.name, errors.Join(p.kill(), p.start()))
		}
	}
}

// RestartAPI is StopAPI and StartAPI.
func (c *ControlPlane) RestartAPI() {
	c.t.Helper()
	c.StopAPI()
	c.StartAPI()
}

// Post creates an object from JSON at the path of its kind, as administrator. An object
// that already exists is not an error.
func (c *ControlPlane) Post(path string, object any) {
	c.t.Helper()
	c.must("create an object at "+path, c.post(c.t.Context(), path, object))
}

func (c *ControlPlane) post(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	printed, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode == http.StatusCreated || res.StatusCode == http.StatusConflict {
		return err
	}
	return fmt.Errorf("%s: %s", res.Status, printed)
}

func (c *ControlPlane) dial() error {
	who, err := c.ca.client("lab-admin", "system:masters")
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(who.cert, who.key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.cert)
	c.client = &http.Client{Timeout: Limit(90 * time.Second), Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}, DisableKeepAlives: true,
	}}
	return nil
}

// startPatience is the timeout of the start of a control plane on a machine that is busy
// with compiling.
const startPatience = 3 * time.Minute

func (c *ControlPlane) awaitAPI() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), Limit(startPatience))
	defer cancel()
	return c.api.await(ctx, "readiness", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := c.client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			printed, _ := io.ReadAll(res.Body)
			return fmt.Errorf("%s: %s", res.Status, printed)
		}
		return nil
	})
}

// allowBootstrap makes BootstrapToken valid, and lets the controller manager approve the
// certificate requests of nodes: the first one and renewals.
func (c *ControlPlane) allowBootstrap() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
	defer cancel()
	err := c.api.await(ctx, "namespace kube-system", func(ctx context.Context) error {
		return c.post(ctx, "/api/v1/namespaces/kube-system/secrets", object{
			"metadata": object{"name": "bootstrap-token-" + BootstrapToken[:6]},
			"type":     "bootstrap.kubernetes.io/token",
			"stringData": object{
				"token-id": BootstrapToken[:6], "token-secret": BootstrapToken[7:],
				"usage-bootstrap-authentication": "true",
			},
		})
	})
	if err != nil {
		return err
	}
	for role, group := range map[string]string{
		"system:node-bootstrapper": "system:bootstrappers",
		"system:certificates.k8s.io:certificatesigningrequests:nodeclient":     "system:bootstrappers",
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": "system:nodes",
	} {
		err := c.post(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object{
			"metadata": object{"name": "lab:" + role},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Log returns the last lines of the log of each component.
func (c *ControlPlane) Log(lines int) string {
	return c.logs(func(p *child) string { return p.tail(lines) })
}

func (c *ControlPlane) logs(of func(*child) string) string {
	var out bytes.Buffer
	for _, p := range c.parts() {
		fmt.Fprintf(&out, "--- %s\n%s\n", p.name, of(p))
	}
	return out.String()
}

// parts returns the components created so far.
func (c *ControlPlane) parts() []*child {
	var parts []*child
	for _, p := range []*child{c.metrics, c.scheduler, c.controllers, c.api, c.etcd} {
		if p != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func (c *ControlPlane) must(act string, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("lab: control plane: %s: %v\n%s", act, err, c.Log(15))
	}
}

func (c *ControlPlane) cleanup() {
	if c.t.Failed() {
		c.t.Logf("lab: the last warnings and errors in the control plane's logs:\n%s", c.logs(func(p *child) string { return p.problems(10) }))
	}
	var errs []error
	for _, p := range c.parts() {
		errs = append(errs, p.kill())
	}
	if err := errors.Join(append(errs, sweep(c.dir))...); err != nil {
		c.t.Errorf("lab: clean up: %v", err)
	}
}

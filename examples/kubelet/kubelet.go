package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/certs"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/status"
)

// Where a kubelet listens unless it is told otherwise. An agent in a cluster does so
// too; one that stands alone only where it is told to.
const (
	kubeletPort = 10250
	healthzPort = 10248
)

// systemLogs are what /logs shows.
const systemLogs = "/var/log"

// kubeletPorts are those of the kubelet's API that are open. Nil: that one is not.
type kubeletPorts struct {
	full, readOnly, healthz net.Listener
}

// openPorts opens those that the configuration has, so that one that somebody else has
// is found out before anything is done.
func openPorts(k kubeletconfig.KubeletConfiguration, cluster bool) (p kubeletPorts, err error) {
	port, readOnly, health := k.Port, k.ReadOnlyPort, k.HealthzPort
	if cluster && port == 0 {
		port = kubeletPort
	}
	if health == nil && cluster {
		health = new(int32(healthzPort))
	}
	if !deref(k.EnableServer) {
		port, readOnly = 0, 0
	}
	for _, open := range []struct {
		field   string
		into    *net.Listener
		address string
		port    int32
	}{
		{"port", &p.full, k.Address, port},
		{"readOnlyPort", &p.readOnly, k.Address, readOnly},
		{"healthzPort", &p.healthz, k.HealthzBindAddress, deref(health)},
	} {
		if open.port == 0 {
			continue
		}
		if open.port < -1 || open.port > 65535 {
			p.close()
			return kubeletPorts{}, fmt.Errorf("%s: %d is no port: want 1 to 65535, or -1 for any that is free", open.field, open.port)
		}
		// -1 is for who starts many agents.
		l, err := net.Listen("tcp", net.JoinHostPort(open.address, strconv.Itoa(int(max(open.port, 0)))))
		if err != nil {
			p.close()
			return kubeletPorts{}, fmt.Errorf("%s: cannot serve the kubelet's API; choose another, or end the kubelet or agent that has it: %w", open.field, err)
		}
		*open.into = l
	}
	return p, nil
}

func (p kubeletPorts) close() {
	for _, l := range []net.Listener{p.full, p.readOnly, p.healthz} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// number is the port of the full API, which the node's object says; 0: there is none.
func (p kubeletPorts) number() int32 {
	if p.full == nil {
		return 0
	}
	return int32(p.full.Addr().(*net.TCPAddr).Port)
}

// A kubelet is the kubelet's API of this node, on its ports.
type kubelet struct {
	ports []*server.Listener
	more  []part
	says  []string // where it is
}

// serveKubelet makes the kubelet's API of what there is.
func (a *assembly) serveKubelet(g ground, k knowledge, c care) (kubelet, error) {
	var out kubelet
	if a.ports == (kubeletPorts{}) {
		return out, nil
	}
	cfg := a.kubeletAPI(g, k, c)
	access := access{config: a.opts.kubelet, cluster: a.cluster, count: a.count, logger: a.logger}
	clientCAs, err := access.into(&cfg, a.ports.full != nil)
	if err != nil {
		return out, err
	}
	if a.opts.kubelet.EnableContentionProfiling {
		goruntime.SetBlockProfileRate(1)
	}
	api, err := server.New(cfg)
	if err != nil {
		return out, err
	}
	add := func(on net.Listener, what string, lc server.ListenerConfig) error {
		if on == nil {
			return nil
		}
		lc.Listener, lc.Logger = on, a.logger
		l, err := server.NewListener(lc)
		out.ports, out.says = append(out.ports, l), append(out.says, fmt.Sprintf(what, on.Addr()))
		return err
	}
	if err := add(a.ports.readOnly, "http://%s/pods", server.ListenerConfig{Handler: api.ReadOnly(), Open: true}); err != nil {
		return out, err
	}
	if err := add(a.ports.healthz, "http://%s/healthz", server.ListenerConfig{Handler: api.Healthz(), Open: true}); err != nil || a.ports.full == nil {
		return out, err
	}
	full := server.ListenerConfig{Handler: api, ClientCAs: clientCAs}
	if full.Certificate, out.more, err = a.servingCertificate(); err != nil {
		return out, err
	}
	warnings, err := readTLS(a.opts.kubelet, &full)
	if err != nil {
		return out, err
	}
	for _, w := range warnings {
		a.say("warning: " + w)
	}
	return out, add(a.ports.full, "the kubelet's API at https://%s", full)
}

func (k kubelet) parts() []part {
	parts := k.more
	for _, l := range k.ports {
		parts = append(parts, l.Run)
	}
	return parts
}

// kubeletAPI is what the API shows.
func (a *assembly) kubeletAPI(g ground, k knowledge, c care) server.Config {
	o := a.opts.kubelet
	cfg := server.Config{
		NodeName: a.opts.nodeName, Pods: shownPods{a.pods, k.statuses}, Runtime: g.rt,
		Summary: func(ctx context.Context, only bool) (*statsapi.Summary, error) {
			if only {
				return g.usage.CPUAndMemory(ctx)
			}
			return g.usage.Summary(ctx, false)
		},
		Metrics: c.metrics, Hooks: a.count.api.Server(),
		Checks:        []server.Check{{Name: "syncloop", Ask: a.count.Check("healthz", "syncloop", a.pods.loop.Healthy)}},
		Configz:       map[string]any{"kubeletconfig": shownConfig(o)},
		CheckpointDir: filepath.Join(a.opts.root, "checkpoints"),
		Debugging: server.Debugging{
			Handlers: deref(o.EnableDebuggingHandlers), SystemLogs: deref(o.EnableSystemLogHandler), NodeLogQuery: deref(o.EnableSystemLogQuery),
			Profiling: deref(o.EnableProfilingHandler), Flags: deref(o.EnableDebugFlagsHandler),
		},
		StreamIdle:  o.StreamingConnectionIdleTimeout.Duration,
		ServiceLogs: server.Journal,
		Verbosity:   a.setVerbosity,
		Logger:      a.logger,
	}
	if root, err := os.OpenRoot(systemLogs); err == nil {
		cfg.NodeLogs = root.FS()
	}
	return cfg
}

// shownConfig is the configuration without what nobody is to read: headers that are
// sent for manifests may be credentials.
func shownConfig(k kubeletconfig.KubeletConfiguration) kubeletconfig.KubeletConfiguration {
	headers := map[string][]string{}
	for name := range k.StaticPodURLHeader {
		headers[name] = []string{"<masked>"}
	}
	k.StaticPodURLHeader = headers
	return k
}

// setVerbosity shows as much as klog would at that level, as far as slog has levels.
func (a *assembly) setVerbosity(level int) {
	a.level.Set(levelOf(level))
}

// shownPods are the pods that are wanted, with what is said of them.
type shownPods struct {
	pods     *view
	statuses *status.Manager
}

// Pods implements server.Pods.
func (s shownPods) Pods() []*v1.Pod {
	pods := s.pods.loop.Pods()
	for i, pod := range pods {
		pods[i] = s.with(pod)
	}
	return pods
}

// Pod implements server.Pods.
func (s shownPods) Pod(namespace, name string) (*v1.Pod, bool) {
	pod := s.pods.loop.PodByName(namespace, name)
	if pod == nil {
		return nil, false
	}
	return s.with(pod), true
}

func (s shownPods) with(pod *v1.Pod) *v1.Pod {
	said, ok := s.statuses.Status(pod.UID)
	if !ok {
		return pod
	}
	shown := *pod
	shown.Status = said
	return &shown
}

// An access is who may ask for what.
type access struct {
	config  kubeletconfig.KubeletConfiguration
	cluster *cluster
	count   *counters
	logger  *slog.Logger
}

// into fills in who is asked; with nothing but ports that ask nobody, nobody is. It
// returns the CAs of client certificates; nil if none is configured.
func (x access) into(cfg *server.Config, asks bool) (clientCAs func() *x509.CertPool, err error) {
	cfg.Authenticator, cfg.Authorizer = auth.Chain{}, auth.AlwaysAllow{}
	if !asks {
		return nil, nil
	}
	var who auth.Chain
	in := x.config.Authentication
	if in.X509.ClientCAFile != "" {
		ca, err := server.NewCAFile(in.X509.ClientCAFile, x.logger)
		if err != nil {
			return nil, fmt.Errorf("authentication.x509.clientCAFile: %w", err)
		}
		clientCAs = ca.Roots
		who = append(who, auth.Certificates{Roots: clientCAs})
	}
	switch webhook := in.Webhook.Enabled; {
	case x.cluster == nil && deref(webhook):
		return nil, errors.New("authentication.webhook.enabled: tokens are reviewed by an API server: there is none without --kubeconfig or --in-cluster")
	case x.cluster != nil && (webhook == nil || *webhook):
		tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: x.cluster.conn.TokenReviews.AuthenticationV1().TokenReviews(), TTL: in.Webhook.CacheTTL.Duration, Hooks: x.count.api.Tokens()})
		if err != nil {
			return nil, err
		}
		who = append(who, tokens)
	}
	if deref(in.Anonymous.Enabled) {
		who = append(who, auth.Anonymous{})
	}
	cfg.Authenticator = who
	return clientCAs, x.authorize(cfg)
}

func (x access) authorize(cfg *server.Config) (err error) {
	in := x.config.Authorization
	switch mode := in.Mode; {
	case mode == kubeletconfig.KubeletAuthorizationModeAlwaysAllow:
		cfg.Authorizer = auth.AlwaysAllow{}
	case mode != "" && mode != kubeletconfig.KubeletAuthorizationModeWebhook:
		err = fmt.Errorf("authorization.mode: %q is neither Webhook nor AlwaysAllow", mode)
	case x.cluster == nil:
		err = errors.New("authorization.mode: Webhook asks an API server who may do what, and there is none without --kubeconfig or --in-cluster: say AlwaysAllow, and who is known by authentication.x509.clientCAFile")
	default:
		cfg.Authorizer, err = auth.NewAccess(auth.AccessConfig{
			Reviews:    x.cluster.conn.AccessReviews.AuthorizationV1().SubjectAccessReviews(),
			AllowedTTL: in.Webhook.CacheAuthorizedTTL.Duration, DeniedTTL: in.Webhook.CacheUnauthorizedTTL.Duration, Hooks: x.count.api.Access(),
		})
	}
	return err
}

// readTLS fills in the TLS fields of the configuration. Insecure versions and suites are
// accepted with a warning, as by a kubelet, so that one file starts both.
func readTLS(k kubeletconfig.KubeletConfiguration, into *server.ListenerConfig) (warnings []string, err error) {
	if into.MinVersion, err = server.TLSVersion(k.TLSMinVersion); err != nil {
		return nil, fmt.Errorf("tlsMinVersion: %w", err)
	}
	if v := into.MinVersion; v != 0 && v < tls.VersionTLS12 {
		warnings = append(warnings, fmt.Sprintf("tlsMinVersion: %s is insecure; want VersionTLS12 or VersionTLS13", k.TLSMinVersion))
	}
	if into.CipherSuites, err = server.CipherSuites(k.TLSCipherSuites); err != nil {
		return nil, fmt.Errorf("tlsCipherSuites: %w", err)
	}
	for _, s := range tls.InsecureCipherSuites() {
		if slices.Contains(into.CipherSuites, s.ID) {
			warnings = append(warnings, fmt.Sprintf("tlsCipherSuites: %s is insecure", s.Name))
		}
	}
	for _, id := range k.TLSCurvePreferences {
		if strings.HasPrefix(tls.CurveID(id).String(), "CurveID(") {
			return nil, fmt.Errorf("tlsCurvePreferences: there is no key exchange with the number %d", id)
		}
		into.Curves = append(into.Curves, tls.CurveID(id))
	}
	return warnings, nil
}

// servingCertificate returns what is shown to who connects (sv-2): a given one, one that
// the cluster signs, or one that nobody else has.
func (a *assembly) servingCertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), []part, error) {
	k := a.opts.kubelet
	dir := cmp.Or(a.opts.cluster.certDir, filepath.Join(a.opts.root, "pki"))
	certFile, keyFile := k.TLSCertFile, k.TLSPrivateKeyFile
	switch {
	case (certFile == "") != (keyFile == ""):
		return nil, nil, errors.New("tlsCertFile and tlsPrivateKeyFile go together; one is missing")
	case certFile != "":
	case k.ServerTLSBootstrap && a.cluster == nil:
		return nil, nil, errors.New("serverTLSBootstrap: certificates are given by a cluster: there is none without --kubeconfig or --in-cluster")
	case k.ServerTLSBootstrap:
		serving, err := certs.NewServing(certs.ServingConfig{
			NodeName: a.opts.nodeName, Dir: dir, Client: a.cluster.conn.API, Addresses: a.cluster.names, Renewed: a.count.api.ServerRenewed, Logger: a.logger,
		})
		if err != nil {
			return nil, nil, err
		}
		a.count.serverExpires = serving.Expires
		return serving.Certificate, []part{serving.Run}, nil
	default:
		var ips []net.IP
		for _, ip := range a.hostIPs() {
			ips = append(ips, net.ParseIP(ip))
		}
		var err error
		if certFile, keyFile, err = certs.SelfSigned(dir, []string{a.opts.nodeName}, ips); err != nil {
			return nil, nil, err
		}
	}
	pair, err := server.NewKeyPair(certFile, keyFile, a.logger)
	if err != nil {
		return nil, nil, fmt.Errorf("tlsCertFile: %w", err)
	}
	return pair.Certificate, nil, nil
}

// names are those that the node's object says it is reached at.
func (c *cluster) names() (names []string, ips []net.IP) {
	object := c.nodeObject()
	if object == nil {
		return nil, nil
	}
	for _, at := range object.Status.Addresses {
		switch at.Type {
		case v1.NodeHostName, v1.NodeInternalDNS, v1.NodeExternalDNS:
			if net.ParseIP(at.Address) == nil {
				names = append(names, at.Address)
			}
		case v1.NodeInternalIP, v1.NodeExternalIP:
			if ip := net.ParseIP(at.Address); ip != nil {
				ips = append(ips, ip)
			}
		}
	}
	return names, ips
}

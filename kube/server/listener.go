package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubeparts/kubeparts/logs"
)

// Timeouts and limits of connections. Those of idle connections and of whole requests are
// the kubelet's (rule sv-1), which has no others.
const (
	idleTimeout                   = 90 * time.Second
	requestTimeout                = 4 * time.Hour
	unauthenticatedRequestTimeout = time.Minute
	maxHeaderBytes                = 1 << 20

	defaultHeaderTimeout      = 10 * time.Second
	defaultMaxConnections     = 4096
	defaultMaxUnauthenticated = 512
	defaultMaxPendingBytes    = 16 << 20
)

// A ListenerConfig configures a Listener.
type ListenerConfig struct {
	// Listener accepts the connections; Run closes it. Required.
	Listener net.Listener

	// Handler is a *Server, its ReadOnly or its Healthz. Required. Only a *Server marks
	// connections as authenticated; those of any other handler count as unauthenticated.
	Handler http.Handler

	// Unauthenticated must be set for a handler that does not authenticate: a Server's
	// ReadOnly or Healthz. All its connections, including those with a pending request,
	// then count against MaxUnauthenticated, so that slow readers are closed before others
	// are refused; and a request and its response may take one minute, not four hours.
	Unauthenticated bool

	// TLS configures encryption. The zero value serves without TLS.
	TLS TLSConfig

	// Limits bound the resources of connections.
	Limits Limits

	// Logger receives failed handshakes, at level debug, and connections that are refused
	// or closed because of Limits. If nil, nothing is logged.
	Logger *slog.Logger
}

// A TLSConfig configures TLS of a Listener.
type TLSConfig struct {
	// Certificate returns the serving certificate: KeyPair.Certificate or
	// certs.Serving.Certificate. It is called for each connection and must not block.
	// If nil, connections are not encrypted.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// ClientCAs returns the CAs whose client certificates are accepted: CAFile.Roots. It
	// is called for each connection and must not block. Certificates are requested, but
	// not verified: auth.Certificates verifies them. If nil, no certificate is requested,
	// so that a client that has one can be anonymous.
	ClientCAs func() *x509.CertPool

	// MinVersion is the minimum version of TLS; see TLSVersion. Zero: TLS 1.2.
	MinVersion uint16

	// CipherSuites are the suites of versions up to TLS 1.2; see CipherSuites. Empty:
	// those of Go. If they contain neither of the suites that HTTP/2 requires (ECDHE with
	// AES_128_GCM_SHA256), only HTTP/1 is served.
	CipherSuites []uint16

	// Curves are the accepted key exchanges. Empty: those of Go.
	Curves []tls.CurveID
}

// Limits bound the resources of the connections of a Listener.
type Limits struct {
	// HeaderTimeout bounds the TLS handshake, and the time until the headers of each
	// request are complete. Zero: 10s.
	HeaderTimeout time.Duration

	// MaxConnections is the maximum number of connections. Zero: 4096. Further
	// connections are closed immediately, unless an unauthenticated one can be closed.
	MaxConnections int

	// MaxUnauthenticated is the maximum number of connections without an authorized
	// request so far. A further one closes the oldest of the client address that has most
	// of them. Zero: 512. Each uses about 30 KiB.
	MaxUnauthenticated int

	// MaxPendingBytes bounds the bytes of incomplete requests on all unauthenticated
	// connections together. If exceeded, the connection with most of them is closed.
	// Zero: 16 MiB.
	MaxPendingBytes int
}

// A Listener serves a handler on one port. It bounds the resources that clients without an
// authorized request can use.
type Listener struct {
	cfg    ListenerConfig
	ran    atomic.Bool // Run was called
	http   http.Server
	conns  connections
	active waitGroup // connections and handlers
}

// NewListener returns a Listener, or an error if cfg is invalid. It starts nothing.
func NewListener(cfg ListenerConfig) (*Listener, error) {
	limits := &cfg.Limits
	switch {
	case cfg.Listener == nil:
		return nil, errors.New("server: ListenerConfig.Listener is nil")
	case cfg.Handler == nil:
		return nil, errors.New("server: ListenerConfig.Handler is nil")
	case min(limits.MaxConnections, limits.MaxUnauthenticated, limits.MaxPendingBytes) < 0 || limits.HeaderTimeout < 0:
		return nil, errors.New("server: ListenerConfig.Limits: HeaderTimeout, MaxConnections, MaxUnauthenticated or MaxPendingBytes is negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = slog.New(logs.Bounded(cfg.Logger.Handler()))
	cfg.TLS.MinVersion = cmp.Or(cfg.TLS.MinVersion, tls.VersionTLS12)
	l := &Listener{cfg: cfg, active: waitGroup{empty: make(chan struct{})}, conns: connections{
		max:                cmp.Or(limits.MaxConnections, defaultMaxConnections),
		maxUnauthenticated: cmp.Or(limits.MaxUnauthenticated, defaultMaxUnauthenticated),
		maxPendingBytes:    cmp.Or(limits.MaxPendingBytes, defaultMaxPendingBytes),
		log:                cfg.Logger,
	}}
	whole := requestTimeout
	if cfg.Unauthenticated {
		whole = unauthenticatedRequestTimeout
	}
	l.http = http.Server{
		Handler:           http.HandlerFunc(l.serve),
		ReadHeaderTimeout: cmp.Or(limits.HeaderTimeout, defaultHeaderTimeout), IdleTimeout: idleTimeout, ReadTimeout: whole, WriteTimeout: whole,
		MaxHeaderBytes: maxHeaderBytes,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 100},
		ConnState:      l.connState,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			return context.WithValue(ctx, connectionKey, c)
		},
	}
	if cfg.TLS.Certificate != nil {
		l.http.TLSConfig = tlsConfig(cfg.TLS)
		if !allowHTTP2(cfg.TLS.CipherSuites) {
			l.http.Protocols = new(http.Protocols)
			l.http.Protocols.SetHTTP1(true)
		}
	}
	return l, nil
}

func tlsConfig(cfg TLSConfig) *tls.Config {
	base := &tls.Config{
		GetCertificate: cfg.Certificate,
		MinVersion:     cfg.MinVersion, CipherSuites: cfg.CipherSuites, CurvePreferences: cfg.Curves,
		NextProtos: []string{"http/1.1"},
	}
	if allowHTTP2(cfg.CipherSuites) {
		base.NextProtos = []string{"h2", "http/1.1"}
	}
	if cfg.ClientCAs == nil {
		return base
	}
	requesting := base.Clone()
	requesting.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := base.Clone()
		// Requested, not verified: the response to an unknown certificate is a 401, as
		// with the kubelet, and not a TLS alert.
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, cfg.ClientCAs()
		return c, nil
	}
	return requesting
}

// allowHTTP2 reports whether the suites contain one that HTTP/2 requires (RFC 7540, section
// 9.2.2); without it an http.Server with HTTP/2 does not start.
func allowHTTP2(suites []uint16) bool {
	return len(suites) == 0 || slices.Contains(suites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) || slices.Contains(suites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
}

// Addr returns the address of the listener.
func (l *Listener) Addr() net.Addr { return l.cfg.Listener.Addr() }

// Run serves until ctx is done. It then closes all connections, including hijacked ones,
// and returns nil after all handlers have returned. It returns an error if the listener
// fails, or if Run was called before.
func (l *Listener) Run(ctx context.Context) error {
	if l.ran.Swap(true) {
		return errors.New("server: Listener.Run was called before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.http.BaseContext = func(net.Listener) context.Context { return ctx }
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		_ = l.http.Close()
		_ = l.cfg.Listener.Close() // http does not close it before Serve
		l.conns.closeAll()
	})
	accepted := &limitedListener{Listener: l.cfg.Listener, conns: &l.conns}
	var err error
	if l.cfg.TLS.Certificate != nil {
		err = l.http.ServeTLS(accepted, "", "")
	} else {
		err = l.http.Serve(accepted)
	}
	cancel()
	wg.Wait()
	l.active.closeAndWait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("server: listen on %v: %w", l.Addr(), err)
}

// serve calls the handler, unless the Listener has stopped.
func (l *Listener) serve(w http.ResponseWriter, r *http.Request) {
	if !l.active.add() {
		return
	}
	defer l.active.done()
	if c, ok := r.Context().Value(connectionKey).(*connection); ok {
		c.requestReceived()
	}
	l.cfg.Handler.ServeHTTP(w, r)
}

// connState counts the connections of net/http.
func (l *Listener) connState(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		l.active.add()
	case http.StateClosed, http.StateHijacked:
		l.active.done()
	}
}

// A waitGroup counts what is active and, unlike a sync.WaitGroup, rejects additions after
// closeAndWait. It takes no lock, so that a flood of connections does not delay requests.
type waitGroup struct {
	n     atomic.Int64  // active; negative after closeAndWait
	empty chan struct{} // closed when n reaches closed
}

// closed is added to the count by closeAndWait.
const closed = math.MinInt64

// add reports false after closeAndWait.
func (g *waitGroup) add() bool {
	for {
		n := g.n.Load()
		if n < 0 {
			return false
		}
		if g.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *waitGroup) done() {
	if g.n.Add(-1) == closed {
		close(g.empty)
	}
}

// closeAndWait waits until nothing is active. It must be called once.
func (g *waitGroup) closeAndWait() {
	if g.n.Add(closed) != closed {
		<-g.empty
	}
}

// TLSVersion returns the version with a name of tlsMinVersion in a KubeletConfiguration,
// such as VersionTLS12; zero if name is empty. As with the kubelet, the insecure versions
// VersionTLS10 and VersionTLS11 are accepted.
func TLSVersion(name string) (uint16, error) {
	versions := map[string]uint16{
		"": 0, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
	}
	v, ok := versions[name]
	if !ok {
		return 0, fmt.Errorf("server: unknown TLS version %q: want VersionTLS12 or VersionTLS13", name)
	}
	return v, nil
}

// CipherSuites returns the suites with the given names, such as
// TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; nil if there are no names. As with the kubelet,
// those of tls.InsecureCipherSuites are accepted.
func CipherSuites(names []string) (ids []uint16, err error) {
	for _, name := range names {
		all := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
		i := slices.IndexFunc(all, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("server: unknown TLS cipher suite %q", name)
		}
		ids = append(ids, all[i].ID)
	}
	return ids, nil
}

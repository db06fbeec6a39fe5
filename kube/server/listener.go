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
)

// What a connection may take (sv-1), and what the kubelet leaves open: how long the
// handshake and the headers of a request may take, and how many may ask at once.
const (
	idleTimeout  = 90 * time.Second
	wholeTimeout = 4 * time.Hour
	openTimeout  = time.Minute
	maxHeader    = 1 << 20 // bytes

	defaultHeaderTimeout = 10 * time.Second
	defaultConnections   = 4096
	defaultStrangers     = 512
	defaultUnread        = 16 << 20
)

// A ListenerConfig says how a handler is served.
type ListenerConfig struct {
	// Listener is where connections come from; Run closes it. Required.
	Listener net.Listener

	// Handler answers: a *Server, its ReadOnly or its Healthz. Required. Only a *Server
	// marks connections as trusted; those of any other handler stay strangers.
	Handler http.Handler

	// Certificate returns the one to show to who connects: KeyPair.Certificate, or
	// certs.Serving.Certificate. It is called for each connection, and must be quick.
	// Nil: connections are not encrypted.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	// ClientCAs returns the CAs whose client certificates are accepted: CAFile.Roots. It
	// is called for each connection, and must be quick. Clients are asked for a
	// certificate of one of these CAs; whether it is valid is for auth.Certificates to
	// decide. If nil, no certificate is requested, so that a client that has one can
	// be anonymous.
	ClientCAs func() *x509.CertPool

	// MinVersion of TLS; zero: 1.2. CipherSuites for versions up to 1.2; empty: Go's
	// own choice. See TLSVersion and CipherSuites. Without one of the two suites that
	// HTTP/2 asks for (ECDHE, AES_128_GCM_SHA256) there is HTTP/1 only.
	MinVersion   uint16
	CipherSuites []uint16

	// Curves are the key exchanges that will do. None: Go's own choice.
	Curves []tls.CurveID

	// HeaderTimeout is how long the handshake, and then the headers of each request,
	// may take. Zero: 10 s.
	HeaderTimeout time.Duration

	// MaxConnections in all. Zero: 4096. What comes beyond is closed at once.
	MaxConnections int

	// MaxStrangers is how many connections may wait that nobody has been let in on:
	// when there are more, one is closed of the host that has most, the one that has
	// waited longest. Zero: 512. A flood of them costs so many goroutines and buffers,
	// some 30 KiB each.
	MaxStrangers int

	// Open is for a handler that lets everybody in: a Server's ReadOnly or its Healthz.
	// All connections are strangers there, those too that are being answered, so that
	// there are no more than MaxStrangers, and who reads slowly makes room for others;
	// and a request and its answer take a minute at most, not four hours.
	Open bool

	// MaxUnread bounds the bytes that all strangers together have sent without a
	// request being complete: when there are more, the connection with the most of
	// them is closed. Zero: 16 MiB.
	MaxUnread int

	// Logger is told of handshakes that fail (debug) and of connections that are
	// closed for the sake of others. Nil: nobody is.
	Logger *slog.Logger
}

// A Listener serves a handler on one port, within the kubelet's limits (sv-1) and a
// bound on what those can take whom nobody has let in.
type Listener struct {
	cfg  ListenerConfig
	ran  atomic.Bool // Run was called
	http http.Server
	crew crew
	busy busy // with connections and handlers
}

// NewListener checks cfg. It starts nothing; the port is open since the caller opened
// it.
func NewListener(cfg ListenerConfig) (*Listener, error) {
	switch {
	case cfg.Listener == nil:
		return nil, errors.New("server: ListenerConfig.Listener is nil")
	case cfg.Handler == nil:
		return nil, errors.New("server: ListenerConfig.Handler is nil")
	case min(cfg.MaxConnections, cfg.MaxStrangers, cfg.MaxUnread) < 0 || cfg.HeaderTimeout < 0:
		return nil, errors.New("server: ListenerConfig: HeaderTimeout, MaxConnections, MaxStrangers or MaxUnread is negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.HeaderTimeout = cmp.Or(cfg.HeaderTimeout, defaultHeaderTimeout)
	cfg.MinVersion = cmp.Or(cfg.MinVersion, tls.VersionTLS12)
	l := &Listener{cfg: cfg, busy: busy{empty: make(chan struct{})}, crew: crew{
		max:       cmp.Or(cfg.MaxConnections, defaultConnections),
		strangers: cmp.Or(cfg.MaxStrangers, defaultStrangers),
		unread:    cmp.Or(cfg.MaxUnread, defaultUnread),
		log:       cfg.Logger,
	}}
	whole := wholeTimeout
	if cfg.Open {
		whole = openTimeout
	}
	l.http = http.Server{
		Handler:           http.HandlerFunc(l.serve),
		ReadHeaderTimeout: cfg.HeaderTimeout, IdleTimeout: idleTimeout, ReadTimeout: whole, WriteTimeout: whole,
		MaxHeaderBytes: maxHeader,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 100},
		ConnState:      l.connState,
		ErrorLog:       slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if t, ok := c.(*tls.Conn); ok {
				c = t.NetConn()
			}
			return context.WithValue(ctx, strangerKey, c)
		},
	}
	if cfg.Certificate != nil {
		l.http.TLSConfig = tlsConfig(cfg)
		if !allowHTTP2(cfg.CipherSuites) {
			l.http.Protocols = new(http.Protocols)
			l.http.Protocols.SetHTTP1(true)
		}
	}
	return l, nil
}

func tlsConfig(cfg ListenerConfig) *tls.Config {
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
	asking := base.Clone()
	asking.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := base.Clone()
		// Requested, not verified: an unknown certificate is answered with a 401, as
		// by a kubelet, and not by a TLS alert.
		c.ClientAuth, c.ClientCAs = tls.RequestClientCert, cfg.ClientCAs()
		return c, nil
	}
	return asking
}

// allowHTTP2 reports whether these suites have one that HTTP/2 asks for (RFC 7540,
// section 9.2.2); without it net/http does not serve at all.
func allowHTTP2(suites []uint16) bool {
	return len(suites) == 0 || slices.Contains(suites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) || slices.Contains(suites, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.cfg.Listener.Addr() }

// Run serves until ctx ends, closes all connections, those too that were taken over
// for streams, and returns nil when all handlers have returned. An error means that
// the port can't be listened on any more. A second call returns an error.
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
		_ = l.cfg.Listener.Close() // which http does not know of if it has not begun
		l.crew.closeAll()
	})
	door := &door{Listener: l.cfg.Listener, crew: &l.crew}
	var err error
	if l.cfg.Certificate != nil {
		err = l.http.ServeTLS(door, "", "")
	} else {
		err = l.http.Serve(door)
	}
	cancel()
	wg.Wait()
	l.busy.end()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("server: listen on %v: %w", l.Addr(), err)
}

// serve calls the handler.
func (l *Listener) serve(w http.ResponseWriter, r *http.Request) {
	if !l.busy.add() {
		return
	}
	defer l.busy.done()
	if c, ok := r.Context().Value(strangerKey).(*conn); ok {
		c.begin()
	}
	l.cfg.Handler.ServeHTTP(w, r)
}

// connState counts the connections that net/http looks after.
func (l *Listener) connState(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		l.busy.add()
	case http.StateClosed, http.StateHijacked:
		l.busy.done()
	}
}

// A busy counts what is under way, until its end, after which nothing begins. It takes no
// lock: a flood of connections must not keep requests of others waiting.
type busy struct {
	n     atomic.Int64  // what is under way; negative after end
	empty chan struct{} // closed when nothing is left after end
}

// over is added to the count by end.
const over = math.MinInt64

func (b *busy) add() bool {
	for {
		n := b.n.Load()
		if n < 0 {
			return false
		}
		if b.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *busy) done() {
	if b.n.Add(-1) == over {
		close(b.empty)
	}
}

// end waits until nothing is under way. Call it once.
func (b *busy) end() {
	if b.n.Add(over) != over {
		<-b.empty
	}
}

// TLSVersion returns a version by the name that a KubeletConfiguration has for it:
// VersionTLS12. Empty: zero. As with a kubelet, TLS 1.0 and 1.1 are accepted too, although
// they are insecure.
func TLSVersion(name string) (uint16, error) {
	versions := map[string]uint16{
		"": 0, "VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
	}
	v, ok := versions[name]
	if !ok {
		return 0, fmt.Errorf("server: there is no TLS version %q: want VersionTLS12 or VersionTLS13", name)
	}
	return v, nil
}

// CipherSuites returns suites by their names: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.
// None: nil. As with a kubelet, those of tls.InsecureCipherSuites are accepted too.
func CipherSuites(names []string) (ids []uint16, err error) {
	for _, name := range names {
		all := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
		i := slices.IndexFunc(all, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("server: there is no TLS cipher suite %q", name)
		}
		ids = append(ids, all[i].ID)
	}
	return ids, nil
}

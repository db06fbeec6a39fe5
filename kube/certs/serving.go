package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

// servingPrefix is the prefix of the files, as with the kubelet.
const servingPrefix = "kubelet-server"

// addressPeriod is the period at which the addresses of the node are checked.
const addressPeriod = 10 * time.Second

// A ServingConfig configures the serving certificate of a node.
type ServingConfig struct {
	// NodeName is the node of the certificate, whose user is system:node:<NodeName>.
	// Required.
	NodeName string

	// Dir is the directory of the certificates; it is created if it does not exist.
	// Required.
	Dir string

	// Client creates the requests. It must be that of the node, since approvers check the
	// user. Required.
	Client kubernetes.Interface

	// Addresses returns the names and addresses of the node, as in its Node object, with
	// which approvers compare them. While there is no address, no certificate is requested;
	// when they change, also while a request is pending, a new one is. It must not block and
	// is not called concurrently. Required.
	Addresses func() (names []string, ips []net.IP)

	// AllowDNSOnly permits a request with names and without an address (the feature gate
	// AllowDNSOnlyNodeCSR). Otherwise none is made, since a node may know its name before
	// its addresses.
	AllowDNSOnly bool

	// KeyAlgorithm is the algorithm of the keys of requests. A certificate in use is not
	// replaced because of it. Empty: ECDSAP256.
	KeyAlgorithm KeyAlgorithm

	// Lifetime is the requested lifetime; the signer may issue a shorter one. Zero: the
	// default of the signer.
	Lifetime time.Duration

	// ApprovalTimeout is the time for which a request is pending before another one is
	// created. Zero: 15m. No controller of Kubernetes approves such requests.
	ApprovalTimeout time.Duration

	// Renewed is called after each attempt to request a certificate. It must not block. May
	// be nil.
	Renewed func(err error)

	// Logger may be nil: nothing is logged.
	Logger *slog.Logger
}

// A Serving requests and renews the serving certificate of a node, signed by the cluster
// (kubernetes.io/kubelet-serving).
type Serving struct {
	cfg     ServingConfig
	ran     atomic.Bool // Run was called
	files   Config      // the part that client certificates have, too
	current atomic.Pointer[tls.Certificate]

	// Used by Run only.
	due     time.Time // of the renewal
	backoff time.Duration
}

// NewServing returns a Serving with the certificate of an earlier process, if there is one.
// It starts nothing.
func NewServing(cfg ServingConfig) (*Serving, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("certs: ServingConfig.Client is nil")
	case cfg.Addresses == nil:
		return nil, errors.New("certs: ServingConfig.Addresses is nil")
	}
	files := Config{NodeName: cfg.NodeName, Dir: cfg.Dir, KeyAlgorithm: cfg.KeyAlgorithm, Lifetime: cfg.Lifetime, ApprovalTimeout: cfg.ApprovalTimeout, Logger: cfg.Logger}
	if err := files.check(); err != nil {
		return nil, err
	}
	s := &Serving{cfg: cfg, files: files}
	store, err := s.request(nil, nil).store(cfg.Dir, files.Logger)
	if err != nil {
		return nil, err
	}
	if is, err := store.Current(); err == nil && is.Leaf != nil && is.Leaf.Subject.CommonName == userPrefix+cfg.NodeName {
		s.setCurrent(is)
	}
	return s, nil
}

// Certificate returns the current certificate, for tls.Config.GetCertificate. It returns an
// error until the cluster has issued one.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if is := s.current.Load(); is != nil {
		return is, nil
	}
	return nil, errors.New("certs: no serving certificate; the certificate signing request is pending approval")
}

// Expires returns the expiration time of the current certificate; the zero time if there is
// none.
func (s *Serving) Expires() time.Time {
	if is := s.current.Load(); is != nil && is.Leaf != nil {
		return is.Leaf.NotAfter
	}
	return time.Time{}
}

// Run requests and renews the certificate until ctx is done; it then returns nil. Failures
// are retried with backoff; a denied request is also retried. It returns an error if it was
// called before.
func (s *Serving) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("certs: Serving.Run was called before")
	}
	for wait := time.Duration(0); pause.For(ctx, wait) == nil; {
		wait = s.sync(ctx)
	}
	return nil
}

// sync requests a certificate if necessary, and returns the time until the next call.
func (s *Serving) sync(ctx context.Context) time.Duration {
	names, ips := s.cfg.Addresses()
	if len(ips) == 0 && (len(names) == 0 || !s.cfg.AllowDNSOnly) {
		return initialBackoff
	}
	is := s.current.Load()
	if is != nil && time.Now().Before(s.due) && covers(is.Leaf, names, ips) {
		return min(addressPeriod, time.Until(s.due))
	}
	desired := s.request(names, ips)
	next, err := request(ctx, s.files, desired, s.cfg.Client, func() bool { return !desired.sameHosts(s.request(s.cfg.Addresses())) })
	if errors.Is(err, errOutdated) {
		s.files.Logger.Info("Addresses of the node have changed; the pending request for a serving certificate is abandoned", "names", names, "ips", fmt.Sprint(ips))
		return initialBackoff
	}
	if err == nil && next.Leaf == nil {
		err = errors.New("certs: invalid certificate")
	}
	if err != nil {
		if ctx.Err() == nil {
			s.files.Logger.Warn("Failed to request serving certificate; will retry", "err", err)
			if s.cfg.Renewed != nil {
				s.cfg.Renewed(err)
			}
		}
		s.backoff = min(max(2*s.backoff, initialBackoff), maxBackoff)
		return s.backoff
	}
	if s.cfg.Renewed != nil {
		s.cfg.Renewed(nil)
	}
	s.setCurrent(next)
	s.files.Logger.Info("Received serving certificate", "expires", next.Leaf.NotAfter)
	s.backoff = 0
	if !covers(next.Leaf, names, ips) {
		// The signer has omitted some, and would do so again.
		s.files.Logger.Warn("Serving certificate does not contain all addresses of the node; requesting another one", "names", names, "ips", fmt.Sprint(ips))
		return maxBackoff
	}
	return min(addressPeriod, max(time.Until(s.due), minRenewInterval))
}

func (s *Serving) setCurrent(c *tls.Certificate) {
	s.current.Store(c)
	s.due = renewAt(c, rand.Float64())
}

// request returns the request of the serving certificate.
func (s *Serving) request(names []string, ips []net.IP) certificateRequest {
	names, ips = slices.Clone(names), slices.Clone(ips)
	slices.Sort(names)
	slices.SortFunc(ips, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	return certificateRequest{
		prefix: servingPrefix, signer: certificatesv1.KubeletServingSignerName, subject: nodeSubject(s.cfg.NodeName),
		usage: certificatesv1.UsageServerAuth, dns: slices.Compact(names), ips: slices.CompactFunc(ips, net.IP.Equal),
	}
}

// covers reports whether a certificate contains all names and addresses.
func covers(c *x509.Certificate, names []string, ips []net.IP) bool {
	for _, name := range names {
		if !slices.Contains(c.DNSNames, name) {
			return false
		}
	}
	for _, ip := range ips {
		if !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
			return false
		}
	}
	return true
}

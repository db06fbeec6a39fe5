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

// The files of serving certificates are the kubelet's as well.
const servingPrefix = "kubelet-server"

// lookPeriod is how often the names are looked at that a certificate is for.
const lookPeriod = 10 * time.Second

// ServingConfig is about the certificate that a node shows to who connects to it.
type ServingConfig struct {
	// NodeName is whom the certificate is for: system:node:<NodeName>. Required.
	NodeName string

	// Dir holds the certificates; it is made if it is not there. Required.
	Dir string

	// Client asks for them; it is the node's own, since approvers look at who asks.
	// Required.
	Client kubernetes.Interface

	// Addresses returns the names and addresses that the node is reached at, which
	// are those of its object: approvers compare them. As long as there are none,
	// nothing is asked for; when there are others, a new certificate is. Required.
	Addresses func() (names []string, ips []net.IP)

	// Lifetime to ask for; the signer may give less. Zero: what it likes.
	Lifetime time.Duration

	// Patience is how long one request is waited for, before another is made. Zero:
	// 15 min. Nothing in a cluster approves such requests by itself.
	Patience time.Duration

	// Renewed is told of each try to get a certificate, for metrics. It must not
	// block. Nil: nobody is told.
	Renewed func(err error)

	// Logger; nil discards.
	Logger *slog.Logger
}

// A Serving gets a node the certificate that it shows to who connects to it, signed by
// the cluster (kubernetes.io/kubelet-serving), and the next one before that ends
// (sv-2).
type Serving struct {
	cfg     ServingConfig
	ran     atomic.Bool // Run was called
	files   Config      // what is the same for all kinds of certificates
	current atomic.Pointer[tls.Certificate]

	// Of Run alone.
	due   time.Time // when the current one is to be renewed
	retry time.Duration
}

// NewServing checks cfg and reads the certificate of an earlier time, if there is one.
// It starts nothing.
func NewServing(cfg ServingConfig) (*Serving, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("certs: ServingConfig.Client is nil")
	case cfg.Addresses == nil:
		return nil, errors.New("certs: ServingConfig.Addresses is nil")
	}
	files := Config{NodeName: cfg.NodeName, Dir: cfg.Dir, Lifetime: cfg.Lifetime, Patience: cfg.Patience, Logger: cfg.Logger}
	if err := files.check(); err != nil {
		return nil, err
	}
	s := &Serving{cfg: cfg, files: files}
	store, err := s.order(nil, nil).store(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if is, err := store.Current(); err == nil && is.Leaf != nil && is.Leaf.Subject.CommonName == userPrefix+cfg.NodeName {
		s.take(is)
	}
	return s, nil
}

// Certificate is the one to show, for tls.Config.GetCertificate. Until the cluster has
// given one, it is an error.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if is := s.current.Load(); is != nil {
		return is, nil
	}
	return nil, errors.New("certs: the cluster has given this node no serving certificate yet; its request waits for approval")
}

// Expires is when the certificate of the moment ends; the zero time if there is none.
func (s *Serving) Expires() time.Time {
	if is := s.current.Load(); is != nil && is.Leaf != nil {
		return is.Leaf.NotAfter
	}
	return time.Time{}
}

// Run gets certificates until ctx ends, and returns nil. What fails is tried again,
// with longer and longer waits; one that is denied is asked for again as well. A
// second call returns an error.
func (s *Serving) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("certs: Serving.Run was called before")
	}
	for wait := time.Duration(0); pause.For(ctx, wait) == nil; {
		wait = s.turn(ctx)
	}
	return nil
}

// turn does what is to be done now, and returns how long nothing is.
func (s *Serving) turn(ctx context.Context) time.Duration {
	names, ips := s.cfg.Addresses()
	if len(names)+len(ips) == 0 {
		return firstRetry
	}
	is := s.current.Load()
	if is != nil && time.Now().Before(s.due) && covers(is.Leaf, names, ips) {
		return min(lookPeriod, time.Until(s.due))
	}
	next, err := request(ctx, s.files, s.order(names, ips), s.cfg.Client)
	if err == nil && next.Leaf == nil {
		err = errors.New("certs: the certificate can't be read")
	}
	if err != nil {
		if ctx.Err() == nil {
			s.files.Logger.Warn("serving certificate", "err", err)
			if s.cfg.Renewed != nil {
				s.cfg.Renewed(err)
			}
		}
		s.retry = min(max(2*s.retry, firstRetry), lastRetry)
		return s.retry
	}
	if s.cfg.Renewed != nil {
		s.cfg.Renewed(nil)
	}
	s.take(next)
	s.files.Logger.Info("there is a new serving certificate", "until", next.Leaf.NotAfter)
	s.retry = 0
	if !covers(next.Leaf, names, ips) {
		// The signer left some out: it would do so again.
		s.files.Logger.Warn("the serving certificate is not for all addresses", "names", names, "ips", fmt.Sprint(ips))
		return lastRetry
	}
	return min(lookPeriod, max(time.Until(s.due), renewPause))
}

func (s *Serving) take(c *tls.Certificate) {
	s.current.Store(c)
	s.due = renewAt(c, rand.Float64())
}

// order is that of a serving certificate, as the signer wants it.
func (s *Serving) order(names []string, ips []net.IP) order {
	names, ips = slices.Clone(names), slices.Clone(ips)
	slices.Sort(names)
	slices.SortFunc(ips, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	return order{
		prefix: servingPrefix, signer: certificatesv1.KubeletServingSignerName, subject: nodeSubject(s.cfg.NodeName),
		usage: certificatesv1.UsageServerAuth, dns: slices.Compact(names), ips: slices.CompactFunc(ips, net.IP.Equal),
	}
}

// covers reports whether a certificate is for all these.
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

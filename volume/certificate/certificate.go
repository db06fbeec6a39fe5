package certificate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

const (
	// maxJitter prevents the sources of many pods from being refreshed at the same time.
	maxJitter = 5 * time.Minute

	// period is the time between two attempts to replace a certificate, and between two reads of a
	// pending replacement if no change is reported.
	period = time.Minute

	// abandonAfter is the time after which a request that is not observed was deleted.
	abandonAfter = 10 * time.Minute

	// purgeAfter is the time after which a source that is not read is discarded.
	purgeAfter = 30 * time.Minute
)

// Requests creates and reads PodCertificateRequests. kube/client implements it. A Cache calls the
// methods concurrently. Their errors become part of events of pods.
type Requests interface {
	// CreatePodCertificateRequest creates a request for a certificate of the pod, and returns its
	// name. The spec has the signer, the signing request, the maximum expiration and the user's
	// annotations; the implementation adds the pod, its service account and the node. It may block
	// until ctx is done.
	CreatePodCertificateRequest(ctx context.Context, pod *v1.Pod, spec certificatesv1.PodCertificateRequestSpec) (name string, err error)

	// PodCertificateRequest returns a request as last observed. The error satisfies
	// podenv.IsNotFound if it was deleted, or not observed yet. It must not block. The result is
	// not modified.
	PodCertificateRequest(namespace, name string) (*certificatesv1.PodCertificateRequest, error)
}

// A Config configures a [Cache].
type Config struct {
	// Requests is the source of certificates. Required.
	Requests Requests

	// Logger receives failures to replace a certificate. If nil, they are discarded.
	Logger *slog.Logger
}

// A Source is a podCertificate source of a projected volume. The objects are not modified.
type Source struct {
	Pod        *v1.Pod
	Volume     string // name in the pod
	Index      int    // of the source in the volume
	Projection *v1.PodCertificateProjection

	// Warn records a warning event of the pod. It may be nil.
	Warn func(reason, message string)
}

// A Bundle is a private key and the certificate that was issued to it.
type Bundle struct {
	Key   []byte // a PKCS #8 private key, PEM
	Chain []byte // the certificate and its intermediates, PEM

	// RefreshAt is the time at which Bundle must be called again even if no request has changed.
	RefreshAt time.Time
}

// A Cache has the certificates of a node's pods. Safe for concurrent use.
type Cache struct {
	cfg Config

	mu      sync.Mutex // guards the fields below; not held during requests
	records map[id]*record
	purged  time.Time
}

// An id identifies a source.
type id struct {
	pod    types.UID
	volume string
	index  int
}

// A record is the state of a source.
type record struct {
	mu sync.Mutex // guards state; held during requests
	state

	// Guarded by the mu of the Cache: what Counts and the purge require.
	signer  string
	report  state
	expires time.Time
}

// New returns a Cache, or an error if Config.Requests is nil.
func New(cfg Config) (*Cache, error) {
	if cfg.Requests == nil {
		return nil, errors.New("certificate: Config.Requests is nil")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Cache{cfg: cfg, records: map[id]*record{}}, nil
}

// Bundle returns the current certificate of a source. It reads the request in progress, and creates
// one if the source has no certificate or the certificate must be replaced. It generates the key,
// which takes seconds for an RSA key, and blocks for the creation, but does not wait for the
// signer: until the first certificate is issued it returns an error. The texts of errors are the
// kubelet's.
func (c *Cache) Bundle(ctx context.Context, s Source) (Bundle, error) {
	if s.Warn == nil {
		s.Warn = func(string, string) {}
	}
	r := c.record(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	bundle, err := c.update(ctx, s, &r.state)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.report, r.expires = r.state, time.Now().Add(purgeAfter)
	if err == nil {
		r.expires = bundle.RefreshAt.Add(purgeAfter)
	}
	return bundle, err
}

// record returns the record of a source, which it creates if there is none.
func (c *Cache) record(s Source) *record {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.purged) >= period {
		c.purged = now
		for key, r := range c.records {
			if now.After(r.expires) {
				delete(c.records, key)
			}
		}
	}
	key := id{s.Pod.UID, s.Volume, s.Index}
	r := c.records[key]
	if r == nil {
		r = &record{signer: s.Projection.SignerName, expires: now.Add(purgeAfter)}
		c.records[key] = r
	}
	return r
}

// update updates the state of a source and returns its certificate.
func (c *Cache) update(ctx context.Context, s Source, st *state) (Bundle, error) {
	if err := c.observe(s, st); err != nil {
		return Bundle{}, err
	}
	if st.due(time.Now()) {
		err := c.request(ctx, s, st)
		if err != nil && st.issued == nil {
			return Bundle{}, err
		}
		if err != nil {
			st.retryAt = time.Now().Add(period)
			c.cfg.Logger.Warn("Failed to request the replacement of a pod certificate; will retry", "pod", s.Pod.Namespace+"/"+s.Pod.Name,
				"podUID", s.Pod.UID, "volumeName", s.Volume, "signer", s.Projection.SignerName, "err", err)
		}
	}
	if st.issued == nil {
		return Bundle{}, errors.New("credential bundle is not issued yet")
	}
	now := time.Now()
	for _, e := range st.warnings(now) {
		s.Warn(e.reason, e.message)
	}
	return Bundle{Key: st.issued.key, Chain: st.issued.chain, RefreshAt: st.nextAt(now)}, nil
}

// observe applies the result of the request in progress, if there is one. It returns an error if
// the source is denied or failed.
func (c *Cache) observe(s Source, st *state) error {
	if p := st.pending; p != nil {
		request, err := c.cfg.Requests.PodCertificateRequest(s.Pod.Namespace, p.name)
		if err != nil && !podenv.IsNotFound(err) {
			if st.issued != nil {
				return nil
			}
			return fmt.Errorf("while getting PodCertificateRequest %q: %w", s.Pod.Namespace+"/"+p.name, err)
		}
		if err != nil {
			request = nil
		}
		st.observe(request, time.Now(), rand.N(maxJitter))
		if r := st.rejected; r != nil {
			s.Warn(r.condition, r.event(s.Pod.Namespace+"/"+p.name))
		}
	}
	if st.rejected != nil {
		return st.rejected
	}
	return nil
}

// request generates a key and requests a certificate for it.
func (c *Cache) request(ctx context.Context, s Source, st *state) error {
	key, csr, err := generate(s.Projection.KeyType)
	if err != nil {
		return err
	}
	name, err := c.cfg.Requests.CreatePodCertificateRequest(ctx, s.Pod, certificatesv1.PodCertificateRequestSpec{
		SignerName:                s.Projection.SignerName,
		MaxExpirationSeconds:      s.Projection.MaxExpirationSeconds,
		StubPKCS10Request:         csr,
		UnverifiedUserAnnotations: s.Projection.UserAnnotations,
	})
	if err != nil {
		return fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	st.pending = &pending{name: name, key: key, abandonAt: time.Now().Add(abandonAfter + rand.N(maxJitter))}
	return nil
}

// Forget deletes the keys and certificates of a pod's volume.
func (c *Cache) Forget(pod types.UID, volume string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.records {
		if key.pod == pod && key.volume == volume {
			delete(c.records, key)
		}
	}
}

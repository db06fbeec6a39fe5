package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
	"github.com/kubeparts/kubeparts/logs"
)

// A deniedError means that a request was denied, so that it must not be repeated.
type deniedError struct{ name, message string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("certs: request %s was denied: %s", e.name, e.message)
}

func (e *deniedError) Unwrap() error { return errFinal }

// errOutdated means that the inputs of a request have changed while it was pending.
var errOutdated = errors.New("certs: request is outdated")

// outdatedPeriod is the period at which the inputs of a pending request are compared.
const outdatedPeriod = time.Second

// untilOutdated returns a context that is done with the cause errOutdated as soon as
// outdated returns true. release must be called; after it, outdated is not called.
func untilOutdated(ctx context.Context, outdated func() bool) (out context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for pause.For(ctx, outdatedPeriod) == nil {
			if outdated() {
				cancel(errOutdated)
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		done.Wait()
	}
}

// request requests a certificate once, waits until it is issued, and stores it. outdated
// reports whether the inputs of the request have changed; request then returns
// errOutdated. It is not called concurrently.
func request(ctx context.Context, cfg Config, r certificateRequest, client kubernetes.Interface, outdated func() bool) (*tls.Certificate, error) {
	keyFile := filepath.Join(cfg.Dir, r.prefix+".key.tmp")
	key, keyPEM, err := loadOrGenerateKey(keyFile, cfg.KeyAlgorithm)
	if err != nil {
		return nil, err
	}
	data, err := certutil.MakeCSR(key, &r.subject, r.dns, r.ips)
	if err != nil {
		return nil, fmt.Errorf("certs: create certificate request: %w", err)
	}
	name, err := r.name(key)
	if err != nil {
		return nil, err
	}
	var lifetime *time.Duration
	if cfg.Lifetime > 0 {
		lifetime = &cfg.Lifetime
	}
	ctx = logs.Context(ctx, cfg.Logger)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, cfg.ApprovalTimeout)
	defer cancel()
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, name, r.signer, lifetime, r.usages(key), key)
	if err != nil {
		return nil, fmt.Errorf("certs: request certificate: %w", err)
	}
	pending, release := untilOutdated(ctx, outdated)
	certPEM, err := waitForCertificate(pending, client.CertificatesV1().CertificateSigningRequests(), name, uid)
	release()
	if err != nil && errors.Is(context.Cause(pending), errOutdated) {
		return nil, fmt.Errorf("%w: %s", errOutdated, name)
	}
	if err != nil {
		if denied := (*deniedError)(nil); errors.As(err, &denied) {
			return nil, errors.Join(denied, os.Remove(keyFile))
		}
		// After a timeout the next attempt creates another request.
		if ctx.Err() != nil && caller.Err() == nil {
			err = errors.Join(err, os.Remove(keyFile))
		}
		return nil, fmt.Errorf("certs: request %s: %w", name, err)
	}
	store, err := r.store(cfg.Dir, cfg.Logger)
	if err != nil {
		return nil, err
	}
	cert, err := store.Update(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certs: store certificate: %w", err)
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("certs: remove temporary key: %w", err)
	}
	return cert, nil
}

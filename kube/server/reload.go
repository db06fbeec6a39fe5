package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// recheckPeriod is the time after which files are read again.
const recheckPeriod = 5 * time.Second

// A reloaded value is parsed from files, and again when it is used and they have changed.
// If that fails, the previous value remains.
type reloaded[T any] struct {
	files []string
	parse func(texts [][]byte) (T, error)
	log   *slog.Logger

	mu    sync.Mutex // guards the fields below
	value T
	texts [][]byte
	next  time.Time // of the next read
}

// newReloaded reads the files for the first time.
func newReloaded[T any](log *slog.Logger, parse func([][]byte) (T, error), files ...string) (*reloaded[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &reloaded[T]{files: files, parse: parse, log: log}
	return r, r.readLocked()
}

// get returns the value, of which the files were read at most recheckPeriod ago.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !now.Before(r.next) {
		if err := r.readLocked(); err != nil {
			r.log.Error("Failed to reload files; the previous version remains in use", "files", r.files, "err", err)
		}
	}
	return r.value
}

func (r *reloaded[T]) readLocked() error {
	r.next = time.Now().Add(recheckPeriod)
	texts := make([][]byte, len(r.files))
	changed := r.texts == nil
	for i, file := range r.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("server: %w", err)
		}
		texts[i] = text
		changed = changed || !bytes.Equal(text, r.texts[i])
	}
	if !changed {
		return nil
	}
	value, err := r.parse(texts)
	if err != nil {
		return fmt.Errorf("server: %v: %w", r.files, err)
	}
	if r.texts != nil {
		r.log.Info("Reloaded files", "files", r.files)
	}
	r.value, r.texts = value, texts
	return nil
}

// A CAFile is a file of CA certificates for client certificates. Changes take effect within
// 5 s. Safe for concurrent use.
type CAFile struct{ pool *reloaded[*x509.CertPool] }

// NewCAFile reads a PEM file of certificates. If logger is nil, nothing is logged. It
// returns an error if the file cannot be read or contains no certificate.
func NewCAFile(path string, logger *slog.Logger) (*CAFile, error) {
	pool, err := newReloaded(logger, func(texts [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(texts[0]) {
			return nil, errors.New("no certificate found")
		}
		return pool, nil
	}, path)
	if err != nil {
		return nil, err
	}
	return &CAFile{pool}, nil
}

// Roots returns the CAs, for auth.Certificates and TLSConfig.ClientCAs.
func (f *CAFile) Roots() *x509.CertPool { return f.pool.get() }

// A KeyPair is a certificate and its private key in two files. Changes take effect within 5
// s, when certificate and key match. Safe for concurrent use.
type KeyPair struct{ pair *reloaded[*tls.Certificate] }

// NewKeyPair reads both files. If logger is nil, nothing is logged. It returns an error if
// they cannot be read or do not match.
func NewKeyPair(certFile, keyFile string, logger *slog.Logger) (*KeyPair, error) {
	pair, err := newReloaded(logger, func(texts [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(texts[0], texts[1])
		return &pair, err
	}, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &KeyPair{pair}, nil
}

// Certificate returns the certificate, for TLSConfig.Certificate.
func (k *KeyPair) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.pair.get(), nil
}

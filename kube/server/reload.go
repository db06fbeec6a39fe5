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

// recheck is how old what was read of a file may be.
const recheck = 5 * time.Second

// A reloaded is something that is read from files, and read again when they have
// changed and somebody asks. What can't be read leaves what was there.
type reloaded[T any] struct {
	files []string
	parse func(texts [][]byte) (T, error)
	log   *slog.Logger

	mu    sync.Mutex // guards the fields below
	value T
	texts [][]byte
	next  time.Time // when to look again
}

// newReloaded reads the files a first time.
func newReloaded[T any](log *slog.Logger, parse func([][]byte) (T, error), files ...string) (*reloaded[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &reloaded[T]{files: files, parse: parse, log: log}
	return r, r.readLocked()
}

// get returns what the files say, or said when they could be read last.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); !now.Before(r.next) {
		if err := r.readLocked(); err != nil {
			r.log.Error("what was read before stays", "err", err)
		}
	}
	return r.value
}

func (r *reloaded[T]) readLocked() error {
	r.next = time.Now().Add(recheck)
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
		r.log.Info("files have changed", "files", r.files)
	}
	r.value, r.texts = value, texts
	return nil
}

// A CAFile is who signs certificates of clients, as a file says it (sv-2): a change of
// the file counts within 5 s. It may be used from any goroutine.
type CAFile struct{ pool *reloaded[*x509.CertPool] }

// NewCAFile reads a PEM file of certificates. Logger nil: nobody is told of changes.
func NewCAFile(path string, logger *slog.Logger) (*CAFile, error) {
	pool, err := newReloaded(logger, func(texts [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(texts[0]) {
			return nil, errors.New("there is no certificate in it")
		}
		return pool, nil
	}, path)
	if err != nil {
		return nil, err
	}
	return &CAFile{pool}, nil
}

// Roots is for auth.Certificates.
func (f *CAFile) Roots() *x509.CertPool { return f.pool.get() }

// A KeyPair is a certificate and its key in two files; a change counts within 5 s, once
// they fit each other.
type KeyPair struct{ pair *reloaded[*tls.Certificate] }

// NewKeyPair reads both files. Logger nil: nobody is told of changes.
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

// Certificate is for ListenerConfig.
func (k *KeyPair) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.pair.get(), nil
}

package certs_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"github.com/kubeparts/kubeparts/kube/certs"
)

// kubeadmConfig is the configuration of a node whose bootstrap kubeconfig kubeadm has
// deleted.
func kubeadmConfig(t *testing.T, s *signer) certs.Config {
	t.Helper()
	cfg := configIn(t, s)
	cfg.Rotate = true
	cfg.Bootstrap = func() (*rest.Config, error) { return nil, os.ErrNotExist }
	return cfg
}

// pair returns a client certificate and its key, valid from now on.
func (s *signer) pair(t *testing.T, user string, groups ...string) (cert, key []byte) {
	t.Helper()
	return s.pairFrom(t, time.Now(), user, groups...)
}

func (s *signer) pairFrom(t *testing.T, from time.Time, user string, groups ...string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signLocked(private.Public(), pkix.Name{CommonName: user, Organization: groups}, from, s.life), key
}

// writeUser writes the kubeconfig file of a user.
func writeUser(t *testing.T, s *signer, file string, user clientcmdapi.AuthInfo) {
	t.Helper()
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://127.0.0.1:1", CertificateAuthorityData: s.pem}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": &user}, Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file))
}

func embed(t *testing.T, s *signer, cfg certs.Config, user string, groups ...string) {
	t.Helper()
	cert, key := s.pair(t, user, groups...)
	writeUser(t, s, cfg.Kubeconfig, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func newRotation(t *testing.T, cfg certs.Config) (*certs.Rotation, error) {
	t.Helper()
	base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	require.NoError(t, err)
	require.True(t, cfg.Rotates(base))
	return certs.NewRotation(base, cfg)
}

// runRotation runs a Rotation while test does its work.
func runRotation(t *testing.T, cfg certs.Config, test func(*certs.Rotation)) {
	t.Helper()
	rotation, err := newRotation(t, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- rotation.Run(ctx) }()
	test(rotation)
	cancel()
	require.NoError(t, <-done)
}

func pemFiles(t *testing.T, cfg certs.Config) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cfg.Dir, "kubelet-client-2*.pem"))
	require.NoError(t, err)
	return files
}

// sv-20
func TestBootstrapCredentialsAreReadOnlyIfThereIsNoValidCertificate(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *signer, certs.Config){
		"embedded":       func(t *testing.T, s *signer, cfg certs.Config) { embed(t, s, cfg, "system:node:n1", "system:nodes") },
		"another user's": func(t *testing.T, s *signer, cfg certs.Config) { embed(t, s, cfg, "admin") },
		"requested": func(t *testing.T, s *signer, cfg certs.Config) {
			cfg.Bootstrap = s.bootstrap
			require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		},
		"replaced": func(t *testing.T, s *signer, cfg certs.Config) {
			embed(t, s, cfg, "system:node:n1", "system:nodes")
			time.Sleep(20 * time.Hour)
			cert, key := s.pair(t, "system:node:n1", "system:nodes")
			require.NoError(t, os.MkdirAll(cfg.Dir, 0o700))
			require.NoError(t, os.WriteFile(cfg.Current(), append(cert, key...), 0o600))
			time.Sleep(5 * time.Hour) // the embedded one has expired
		},
		"the clock is behind": func(t *testing.T, s *signer, cfg certs.Config) {
			cert, key := s.pairFrom(t, time.Now().Add(time.Hour), "system:node:n1", "system:nodes")
			writeUser(t, s, cfg.Kubeconfig, clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				cfg := kubeadmConfig(t, s)
				cfg.Bootstrap = func() (*rest.Config, error) { t.Error("read"); return nil, os.ErrNotExist }
				prepare(t, s, cfg)
				require.NoError(t, certs.Bootstrap(t.Context(), cfg))
				rotation, err := newRotation(t, cfg)
				require.NoError(t, err)
				assert.True(t, rotation.Expires().After(time.Now()))
			})
		})
	}
}

func TestAnExpiredEmbeddedCertificateIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := kubeadmConfig(t, s)
		embed(t, s, cfg, "system:node:n1", "system:nodes")
		time.Sleep(25 * time.Hour)
		err := certs.Bootstrap(t.Context(), cfg)
		require.ErrorContains(t, err, "client certificate of system:node:n1 expired at ")
		require.ErrorIs(t, err, os.ErrNotExist, "and there is nothing to request another one with")
		_, err = newRotation(t, cfg)
		require.ErrorContains(t, err, "client certificate of system:node:n1 expired at ")

		cfg.Bootstrap = s.bootstrap
		require.NoError(t, certs.Bootstrap(t.Context(), cfg))
		require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
		_, err = newRotation(t, cfg)
		require.NoError(t, err)
	})
}

// kubeadm init embeds a certificate in kubelet.conf, and refers to
// kubelet-client-current.pem when that file exists.
func TestAnEmbeddedCertificateIsCopiedAndReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := kubeadmConfig(t, s)
		embed(t, s, cfg, "system:node:n1", "system:nodes")
		s.fails = 3 // the API server is a static pod of this node
		runRotation(t, cfg, func(rotation *certs.Rotation) {
			require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()), "the copy exists before the API server is reached")
			assert.Len(t, pemFiles(t, cfg), 1)
			time.Sleep(time.Minute)
			assert.Len(t, s.names(), 1)
			assert.Len(t, pemFiles(t, cfg), 2)
		})
	})
}

func TestACopiedCertificateIsRenewedInTimeAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := kubeadmConfig(t, s)
		embed(t, s, cfg, "system:node:n1", "system:nodes")
		_, err := newRotation(t, cfg)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		runRotation(t, cfg, func(rotation *certs.Rotation) {
			assert.Len(t, pemFiles(t, cfg), 1, "one copy")
			time.Sleep(time.Minute)
			assert.Empty(t, s.names(), "as with the kubelet")
			time.Sleep(22 * time.Hour)
			assert.Len(t, s.names(), 1)
			assert.Len(t, pemFiles(t, cfg), 2)
			assert.True(t, rotation.Expires().After(time.Now().Add(12*time.Hour)))
		})
	})
}

func TestACertificateOfAnotherUserIsReplacedAtOnceAlsoAfterARestart(t *testing.T) {
	for name, restart := range map[string]bool{"first": false, "restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSigner(t)
				cfg := kubeadmConfig(t, s)
				embed(t, s, cfg, "kubernetes-admin", "system:masters")
				if restart {
					_, err := newRotation(t, cfg)
					require.NoError(t, err)
				}
				runRotation(t, cfg, func(*certs.Rotation) {
					assert.Len(t, pemFiles(t, cfg), 1, "one copy")
					time.Sleep(time.Minute)
					assert.Len(t, s.names(), 1)
				})
				require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
				runRotation(t, cfg, func(*certs.Rotation) {
					time.Sleep(time.Minute)
					assert.Len(t, s.names(), 1, "the current one is used")
				})
			})
		})
	}
}

func TestACertificateInAnotherFileIsRenewedWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		cfg := kubeadmConfig(t, s)
		cert, key := s.pair(t, "system:node:n1", "system:nodes")
		own := cfg.Kubeconfig + ".pem"
		require.NoError(t, os.WriteFile(own, append(cert, key...), 0o600))
		writeUser(t, s, cfg.Kubeconfig, clientcmdapi.AuthInfo{ClientCertificate: own, ClientKey: own})
		runRotation(t, cfg, func(rotation *certs.Rotation) {
			time.Sleep(16 * time.Hour)
			assert.Empty(t, s.names())
			assert.Empty(t, pemFiles(t, cfg), "no copy")
			time.Sleep(6 * time.Hour)
			assert.Len(t, s.names(), 1)
			require.NoError(t, certs.Valid(cfg.Current(), "n1", time.Now()))
		})
		cfg.Rotate = false
		base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
		require.NoError(t, err)
		assert.False(t, cfg.Rotates(base))
	})
}

// An operator replaces an expired token while a node waits.
func TestAPendingFirstRequestIsReplacedWithItsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSigner(t)
		s.silent = true
		cfg, token := configIn(t, s), "old"
		cfg.Bootstrap = func() (*rest.Config, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			c := s.config()
			c.BearerToken = token
			if token == "" {
				return nil, errors.New("half a file")
			}
			return c, nil
		}
		done := make(chan error)
		go func() { done <- certs.Bootstrap(t.Context(), cfg) }()
		time.Sleep(time.Minute)
		s.mu.Lock()
		token = ""
		s.mu.Unlock()
		time.Sleep(time.Minute)
		assert.Len(t, s.names(), 1, "an incomplete file is no change")
		s.mu.Lock()
		token, s.silent = "new", false
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.NoError(t, <-done)
		assert.Equal(t, "new", s.by[len(s.by)-1].BearerToken)
		assert.Len(t, s.names(), 2)
	})
}

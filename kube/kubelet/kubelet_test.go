package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/claim"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/volume"
)

// freePort returns a TCP port of the loopback interface.
func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// withAPI returns a standalone Config that serves the API to everybody at a port.
func withAPI(t *testing.T, port int32) Config {
	return runnable(t, "address: 127.0.0.1\nport: "+strconv.Itoa(int(port))+"\nauthentication: {anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n")
}

// Whatever fails in New, a kubelet with the same root directory and ports can be
// constructed afterwards.
func TestNewReleasesEverythingIfItFails(t *testing.T) {
	good := withAPI(t, freePort(t))
	failed := errors.New("failed")
	for name, change := range map[string]func(*Config){
		"volumes": func(c *Config) {
			c.Adjust = append(c.Adjust, compose.TryAdjust(func(*volume.Config) error { return failed }))
		},
		"credentials": func(c *Config) {
			c.Runtime.CredentialProviderConfig, c.Runtime.CredentialProviderBinDir = "/none", "/none"
		},
		"runtime": func(c *Config) {
			c.Adjust = append(c.Adjust, compose.TryAdjust(func(*cri.Config) error { return failed }))
		},
		"agent": func(c *Config) {
			c.Adjust = append(c.Adjust, compose.TryAdjust(func(*agent.Config) error { return failed }))
		},
		"logs": func(c *Config) {
			c.Adjust = append(c.Adjust, compose.TryAdjust(func(*logrotate.Config) error { return failed }))
		},
		"certificate": func(c *Config) { c.Configuration.TLSCertFile, c.Configuration.TLSPrivateKeyFile = "/none", "/none" },
		"server": func(c *Config) {
			c.Adjust = append(c.Adjust, compose.TryAdjust(func(*server.Config) error { return failed }))
		},
		"TLS": func(c *Config) { c.Configuration.TLSMinVersion = "none" },
	} {
		bad := good
		bad.Configuration = good.Configuration.DeepCopy()
		change(&bad)
		_, err := Open(t.Context(), bad)
		require.Error(t, err, name)
		assert.NotErrorIs(t, err, claim.ErrInUse, name)
		k, err := Open(t.Context(), good)
		require.NoError(t, err, "after a failure of "+name)
		require.NoError(t, k.Close())
	}
}

// The runtime is closed last, and only if New has connected to it.
func TestPlainProcessesAreClosed(t *testing.T) {
	cfg := runnable(t, "containerRuntimeEndpoint: process\n")
	cfg.Runtime = Runtime{}
	for range 2 { // the second one could not lock the directory of a runtime that is open
		bad := cfg
		bad.Adjust = append(bad.Adjust, compose.TryAdjust(func(*logrotate.Config) error { return errors.New("failed") }))
		_, err := Open(t.Context(), bad)
		require.EqualError(t, err, "Config.Adjust of logrotate.Config: failed")
		k, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, k.Close())
	}
}

func TestRunIsCalledOnce(t *testing.T) {
	k, err := Open(t.Context(), runnable(t, ""))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, k.Run(ctx))
	assert.EqualError(t, k.Run(ctx), "kubelet: Run or Close was called before")
	assert.NoError(t, k.Close(), "it has no effect")
}

func TestCloseWithoutRun(t *testing.T) {
	cfg := withAPI(t, -1)
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	addr := k.APIAddr().String()
	require.NoError(t, k.Close())
	require.NoError(t, k.Close())
	assert.EqualError(t, k.Run(t.Context()), "kubelet: Run or Close was called before")
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err, "the port is free")
	require.NoError(t, l.Close())
	k, err = Open(t.Context(), cfg)
	require.NoError(t, err, "the root directory is free")
	require.NoError(t, k.Close())
}

func TestASourceOfPodsIsRequired(t *testing.T) {
	cfg := standalone(t, "")
	_, err := Open(t.Context(), cfg)
	require.EqualError(t, err, "there is no source of pods: want a cluster, or staticPodPath or staticPodURL in the Configuration")
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *agent.Config) {
		c.Sources["own"] = new(podsource.Memory)
	}))
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, k.Close())
}

func TestTwoKubeletsMustNotShareARootDirectory(t *testing.T) {
	cfg := runnable(t, "")
	first, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	_, err = Open(t.Context(), cfg)
	require.ErrorIs(t, err, claim.ErrInUse)
	assert.ErrorContains(t, err, cfg.RootDir)
	require.NoError(t, first.Close())
	assert.Nil(t, first.APIAddr())
}

func TestNewCreatesTheDirectoryOfPullRecords(t *testing.T) { // Kubernetes' node tests wait for it
	cfg := runnable(t, "")
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	assert.DirExists(t, filepath.Join(cfg.RootDir, "image_manager", "pulled"))
	assert.DirExists(t, filepath.Join(cfg.RootDir, "image_manager", "pulling"))
	require.NoError(t, k.Close())
}

// A component that fails stops the others, and Run returns its error.
func TestRunReturnsTheErrorOfAComponent(t *testing.T) {
	k, err := Open(t.Context(), withAPI(t, -1))
	require.NoError(t, err)
	failed := errors.New("failed")
	k.components = append(k.components, func(context.Context) error { return failed })
	require.ErrorIs(t, k.Run(t.Context()), failed)
}

func TestDrainTerminatesStaticPods(t *testing.T) {
	cfg := runnable(t, "")
	cfg.Configuration.StaticPodPath = filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(cfg.Configuration.StaticPodPath, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}`), 0o600))
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	require.Eventually(t, func() bool {
		return len(k.Agent().Table().Running()) == 1
	}, 90*time.Second, 10*time.Millisecond)
	draining, done := context.WithTimeout(t.Context(), 90*time.Second)
	defer done()
	require.NoError(t, k.Drain(draining))
	for _, s := range k.Agent().Table().States() {
		assert.Equal(t, podworker.Finished, s.State)
	}
	cancel()
	require.NoError(t, <-ran)
}

func TestAPIAndStatusPage(t *testing.T) {
	k, err := Open(t.Context(), withAPI(t, -1))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/pods", "/configz", "/metrics", "/stats/summary"} {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			answer, err := c.Get("https://" + k.APIAddr().String() + path)
			if assert.NoError(t, err) {
				_ = answer.Body.Close()
				assert.Equal(t, 200, answer.StatusCode, path)
			}
		}, 90*time.Second, 20*time.Millisecond)
	}
	for _, path := range []string{"/", "/healthz", "/pods", "/explain", "/metrics", "/stats/summary"} {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			answer := httptest.NewRecorder()
			k.StatusPage().ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost"+path, nil))
			assert.Equal(t, 200, answer.Code, path)
		}, 90*time.Second, 20*time.Millisecond)
	}
	cancel()
	require.NoError(t, <-ran)
}

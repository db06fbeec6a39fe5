package credentials_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"
)

// The tests' plugin is the test binary itself, under another name; this variable
// selects its behavior.
const pluginMode = "CREDENTIALS_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if mode := os.Getenv(pluginMode); mode != "" {
		os.Exit(actAsPlugin(mode))
	}
	os.Exit(m.Run())
}

// A pluginRequest is the request that a plugin reads from its stdin.
type pluginRequest struct {
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	Image       string            `json:"image"`
	Token       string            `json:"serviceAccountToken"`
	Annotations map[string]string `json:"serviceAccountAnnotations"`
}

// actAsPlugin implements a credential provider plugin: it reads a request, and responds
// with a user and a password for the registry of the image.
func actAsPlugin(mode string) int {
	question, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	var req pluginRequest
	if err := json.Unmarshal(question, &req); err != nil || req.Kind != "CredentialProviderRequest" {
		fmt.Fprintln(os.Stderr, "not a request")
		return 1
	}
	if log := os.Getenv("PLUGIN_LOG"); log != "" {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		fmt.Fprintf(f, "%s\n", question)
		f.Close()
	}
	if gate := os.Getenv("PLUGIN_GATE"); gate != "" { // it is open when the test closes the connection
		conn, err := net.Dial("tcp", gate)
		if err != nil {
			return 1
		}
		_, _ = conn.Read(make([]byte, 1))
	}
	if raw, ok := strings.CutPrefix(mode, "raw:"); ok {
		fmt.Print(raw)
		return 0
	}
	switch mode {
	case "fail":
		fmt.Fprintf(os.Stderr, "cannot reach\nthe cloud with %s\n", req.Token)
		return 3
	case "shout":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 100<<10)+" the end")
		return 1
	case "hang":
		if call := os.Getenv("PLUGIN_CALL"); call != "" {
			conn, err := net.Dial("tcp", call)
			if err != nil {
				return 1
			}
			defer conn.Close()
		}
		time.Sleep(time.Hour)
	case "linger": // with stdout and stderr open
		time.Sleep(2 * time.Minute)
		return 0
	case "orphan":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), pluginMode+"=linger")
		child.Stdin = strings.NewReader(string(question))
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return 1
		}
		mode = "Image"
	case "flood":
		chunk := strings.Repeat(" ", 64<<10)
		for range 10000 {
			if _, err := fmt.Print(chunk); err != nil {
				return 1
			}
		}
	}
	registry, _, _ := strings.Cut(req.Image, "/")
	answer := map[string]any{
		"apiVersion":   req.APIVersion,
		"kind":         "CredentialProviderResponse",
		"cacheKeyType": mode, // Image, Registry or Global
		"auth": map[string]any{
			registry: map[string]string{"username": "user of " + filepath.Base(os.Args[0]), "password": "for " + req.Image + " " + req.Token},
		},
	}
	if keep := os.Getenv("PLUGIN_KEEP"); keep != "" {
		answer["cacheDuration"] = keep
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		return 1
	}
	return 0
}

// pluginDir returns a directory with plugins of the given names.
func pluginDir(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if runtime.GOOS != "windows" {
			require.NoError(t, os.Symlink(self, path))
			continue
		}
		data, err := os.ReadFile(self)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".exe", data, 0o700))
	}
	return dir
}

// provider returns a provider for reg.io that behaves as mode specifies; more are
// environment variables, "NAME=value".
func provider(name, mode string, more ...string) kubeletconfig.CredentialProvider {
	p := kubeletconfig.CredentialProvider{
		Name:                 name,
		MatchImages:          []string{"reg.io"},
		DefaultCacheDuration: &metav1.Duration{Duration: time.Hour},
		APIVersion:           "credentialprovider.kubelet.k8s.io/v1",
		Env: []kubeletconfig.ExecEnvVar{
			{Name: pluginMode, Value: mode},
			{Name: "GORACE", Value: "atexit_sleep_ms=0"}, // the race detector adds a second to each run
		},
	}
	for _, m := range more {
		key, value, _ := strings.Cut(m, "=")
		p.Env = append(p.Env, kubeletconfig.ExecEnvVar{Name: key, Value: value})
	}
	return p
}

// requests returns the requests that the plugins recorded in the log.
func requests(t *testing.T, log string) []pluginRequest {
	t.Helper()
	data, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var all []pluginRequest
	for line := range strings.Lines(string(data)) {
		var r pluginRequest
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
}

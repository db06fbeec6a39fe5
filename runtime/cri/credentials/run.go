package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	kjson "sigs.k8s.io/json"
)

const (
	// maxResponse is the maximum size of a plugin's stdout, in bytes.
	maxResponse = 1 << 20

	// maxStderr is the maximum size of the end of stderr that is logged, in bytes.
	maxStderr = 2 << 10

	// pipeDelay is how long child processes may keep a plugin's pipes open after it has
	// exited or was killed.
	pipeDelay = 500 * time.Millisecond
)

// A response is a valid response of a plugin.
type response struct {
	entries  []entry
	scope    providerv1.PluginCacheKeyType
	duration *metav1.Duration // of the cache entry; nil means the default
	ignored  []error          // keys of auth that are not patterns
}

// run executes the plugin with the request on stdin and parses the response from stdout.
func (p *plugin) run(ctx context.Context, req providerv1.CredentialProviderRequest) (response, error) {
	path, err := p.executable()
	if err != nil {
		return response{}, err
	}
	req.TypeMeta = metav1.TypeMeta{Kind: "CredentialProviderRequest", APIVersion: p.APIVersion}
	input, err := json.Marshal(req)
	if err != nil {
		return response{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no answer within %v", p.timeout))
	defer cancel()
	stdout := &responseBuffer{full: cancel}
	stderr := new(tailBuffer)
	cmd := exec.CommandContext(ctx, path, p.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, stderr
	cmd.WaitDelay = pipeDelay
	cmd.Env = os.Environ()
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value) // the last value of a name applies
	}
	err = cmd.Run()
	switch {
	case stdout.over:
		err = fmt.Errorf("wrote more than %d bytes", maxResponse)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it exited with 0; a child process keeps a pipe open
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		// Stderr may contain credentials, so it is not part of the error: errors reach
		// pod events, which more users can read than the log of the node.
		if text := stderr.tail(req.ServiceAccountToken); text != "" {
			p.log.Warn("Credential provider plugin failed", "plugin", p.Name, "image", req.Image, "err", err, "stderr", text)
		}
		return response{}, fmt.Errorf("run for image %s: %w", req.Image, err)
	}
	a, err := parseResponse(stdout.data, p.APIVersion)
	if err != nil {
		return response{}, fmt.Errorf("response for image %s: %w", req.Image, err)
	}
	return a, nil
}

// parseResponse parses a CredentialProviderResponse of the given version. Unknown and
// duplicate fields are errors; keys of auth that are not patterns are ignored. Errors do
// not quote the response, which contains credentials.
func parseResponse(data []byte, version string) (response, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return response{}, errors.New("is empty")
	}
	// The version is checked first, because another version may have other fields.
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return response{}, shapeError(err)
	}
	switch {
	case meta.Kind != "CredentialProviderResponse":
		return response{}, errors.New("kind is not CredentialProviderResponse")
	case meta.APIVersion != version:
		return response{}, fmt.Errorf("apiVersion is not %s, the version of the request", version)
	}
	var r providerv1.CredentialProviderResponse // the versions have the same fields
	strict, err := kjson.UnmarshalStrict(data, &r)
	if err != nil {
		return response{}, errors.New("a field has the wrong type")
	}
	if len(strict) > 0 {
		return response{}, errors.New("has an unknown or repeated field")
	}
	switch r.CacheKeyType {
	case providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType:
	default:
		return response{}, errors.New("cacheKeyType is not Image, Registry or Global")
	}
	a := response{scope: r.CacheKeyType, duration: r.CacheDuration}
	for _, key := range slices.Sorted(maps.Keys(r.Auth)) {
		pat, err := parsePattern(key)
		if err != nil {
			a.ignored = append(a.ignored, fmt.Errorf("key %w", err))
			continue
		}
		auth := r.Auth[key]
		a.entries = append(a.entries, entry{pat, Credential{Username: auth.Username, Password: auth.Password}})
	}
	return a, nil
}

// A responseBuffer accepts maxResponse bytes, then calls full.
type responseBuffer struct {
	data []byte
	over bool
	full func()
}

func (b *responseBuffer) Write(data []byte) (int, error) {
	if len(b.data)+len(data) > maxResponse {
		b.over = true
		b.full()
		return 0, errors.New("response too large")
	}
	b.data = append(b.data, data...)
	return len(data), nil
}

// A tailBuffer keeps the last bytes written to it.
type tailBuffer struct {
	data []byte
	lost bool // earlier bytes were dropped
}

// tailKept is the size of a tailBuffer in bytes: the logged part and a token before it, so
// that a token at the boundary is redacted as a whole.
const tailKept = maxStderr + 32<<10

func (b *tailBuffer) Write(data []byte) (int, error) {
	b.data = append(b.data, data...)
	if extra := len(b.data) - tailKept; extra > 0 {
		b.data = append(b.data[:0], b.data[extra:]...)
		b.lost = true
	}
	return len(data), nil
}

// tail returns the end of the written bytes, as one line and with the token redacted.
func (b *tailBuffer) tail(token string) string {
	text := string(b.data)
	if token != "" {
		text = strings.ReplaceAll(text, token, "[token]")
	}
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.TrimSpace(text)
	lost := b.lost
	if len(text) > maxStderr {
		text, lost = strings.ToValidUTF8(text[len(text)-maxStderr:], ""), true
	}
	if lost {
		text = "…" + text
	}
	return text
}

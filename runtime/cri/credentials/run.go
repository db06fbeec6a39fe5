package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

const (
	// maxAnswer bounds what a plugin may write to stdout, in bytes.
	maxAnswer = 1 << 20

	// maxStderr bounds the part of its stderr that is logged, in bytes: the end.
	maxStderr = 2 << 10

	// pipeDelay is how long children that a plugin leaves behind may hold its
	// pipes, after it has exited or was killed.
	pipeDelay = 500 * time.Millisecond
)

// A request is what a plugin is asked.
type request struct {
	Image       string
	Token       string            // of a service account; "" without
	Annotations map[string]string // of that account
}

// An answer is what a plugin has to say.
type answer struct {
	entries []entry
	scope   scope
	keep    *time.Duration // nil: the default
	ignored []error        // keys of auth that are no patterns
}

// run asks the plugin: the request goes to its stdin, the response comes from
// its stdout.
func (p *plugin) run(ctx context.Context, req request) (answer, error) {
	path, err := p.executable()
	if err != nil {
		return answer{}, err
	}
	question, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Image           string            `json:"image"`
		Token           string            `json:"serviceAccountToken,omitempty"`
		Annotations     map[string]string `json:"serviceAccountAnnotations,omitempty"`
	}{metav1.TypeMeta{Kind: "CredentialProviderRequest", APIVersion: p.APIVersion}, req.Image, req.Token, req.Annotations})
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("no answer within %v", p.timeout))
	defer cancel()
	stdout := &answerBuffer{full: cancel}
	stderr := new(tailBuffer)
	cmd := exec.CommandContext(ctx, path, p.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(question), stdout, stderr
	cmd.WaitDelay = pipeDelay
	cmd.Env = slices.Clone(p.environ())
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value) // the last of a name counts
	}
	err = cmd.Run()
	switch {
	case stdout.over:
		err = fmt.Errorf("wrote more than %d bytes", maxAnswer)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it exited well and said what it had to say
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		// What a plugin prints may contain credentials. Errors reach the events of
		// pods, which more users can read than the log of the node.
		if said := stderr.words(req.Token); said != "" {
			p.log.Warn("Credential provider plugin failed", "plugin", p.Name, "image", req.Image, "err", err, "stderr", said)
		}
		return answer{}, fmt.Errorf("run for image %s: %w", req.Image, err)
	}
	a, err := parseResponse(stdout.data, p.APIVersion)
	if err != nil {
		return answer{}, fmt.Errorf("response for image %s: %w", req.Image, err)
	}
	return a, nil
}

// parseResponse reads a CredentialProviderResponse of the given version. Unknown
// and repeated fields are errors; a key of auth that is no pattern is ignored.
// No error tells what the response says.
func parseResponse(data []byte, version string) (answer, error) {
	var r struct {
		metav1.TypeMeta `json:",inline"`
		CacheKeyType    scope            `json:"cacheKeyType"`
		CacheDuration   *metav1.Duration `json:"cacheDuration"`
		Auth            map[string]struct {
			Username string `json:"username"`
			Password string `json:"password"`
		} `json:"auth"`
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return answer{}, errors.New("is empty")
	}
	// The version first: of another one the fields would not be known.
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return answer{}, shapeError(err)
	}
	switch {
	case meta.Kind != "CredentialProviderResponse":
		return answer{}, errors.New("kind is not CredentialProviderResponse")
	case meta.APIVersion != version:
		return answer{}, fmt.Errorf("apiVersion is not %s, which the plugin was asked in", version)
	}
	strict, err := kjson.UnmarshalStrict(data, &r)
	if err != nil {
		return answer{}, errors.New("a field has the wrong type")
	}
	if len(strict) > 0 {
		return answer{}, errors.New("has an unknown or repeated field")
	}
	switch r.CacheKeyType {
	case scopeImage, scopeRegistry, scopeGlobal:
	default:
		return answer{}, errors.New("cacheKeyType is not Image, Registry or Global")
	}
	a := answer{scope: r.CacheKeyType}
	if r.CacheDuration != nil {
		a.keep = &r.CacheDuration.Duration
	}
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

// An answerBuffer takes maxAnswer bytes, then calls full.
type answerBuffer struct {
	data []byte
	over bool
	full func()
}

func (b *answerBuffer) Write(data []byte) (int, error) {
	if len(b.data)+len(data) > maxAnswer {
		b.over = true
		b.full()
		return 0, errors.New("too much")
	}
	b.data = append(b.data, data...)
	return len(data), nil
}

// A tailBuffer keeps the last bytes that are written to it.
type tailBuffer struct {
	data []byte
	lost bool // some were dropped
}

// tailKept is what a tailBuffer keeps: room for what is shown and for a token
// before it, so that no part of a token is shown because it was cut.
const tailKept = maxStderr + 32<<10

func (b *tailBuffer) Write(data []byte) (int, error) {
	b.data = append(b.data, data...)
	if extra := len(b.data) - tailKept; extra > 0 {
		b.data = append(b.data[:0], b.data[extra:]...)
		b.lost = true
	}
	return len(data), nil
}

// words returns the end of what was written, in one line and without the token.
func (b *tailBuffer) words(token string) string {
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

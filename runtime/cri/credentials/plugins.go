package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/kubeparts/kubeparts/internal/singleflight"
)

// A TokenSource has service accounts and their tokens. It is asked during a
// Lookup, from many goroutines, and may block as long as it obeys ctx.
type TokenSource interface {
	// ServiceAccount returns the account. It is only read.
	ServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)

	// Token returns a token of the pod's service account for the audience, bound
	// to the pod.
	Token(ctx context.Context, pod *v1.Pod, audience string) (string, error)
}

// PluginsConfig configures Plugins.
type PluginsConfig struct {
	// Providers are the plugins, as ReadProviders returns them. Where several
	// have an answer for the same key, the first goes first. Empty: the keyring
	// has nothing.
	Providers []kubeletconfig.CredentialProvider

	// Dir is the directory of their executables. Required if there are
	// providers. Whoever can write to it can run code as the agent.
	Dir string

	// Tokens has the tokens of service accounts. Nil: a plugin with
	// TokenAttributes is not asked for pods that have a service account, nor ever
	// if it requires one; Lookup says so in its error.
	Tokens TokenSource

	// Environ is the environment of the plugins, to which each adds its own. Nil
	// is os.Environ: what a plugin needs to reach its cloud (proxies, regions)
	// is mostly there.
	Environ func() []string

	// Timeout is for one run of a plugin. Zero is a minute, as with the kubelet.
	// A short one fails pulls where a cloud's metadata service is slow.
	Timeout time.Duration

	// Logger hears of each run, at the debug level. Nil discards.
	Logger *slog.Logger

	// Hooks are told what happens.
	Hooks Hooks
}

// Hooks are called by Plugins; each may be nil. They may be called from many
// goroutines at once and must not block.
type Hooks struct {
	// PluginRan is called after each run of a plugin, for the kubelet's metrics
	// kubelet_credential_provider_plugin_duration and _errors.
	PluginRan func(PluginRunInfo)
}

// PluginRunInfo tells of one run of a plugin.
type PluginRunInfo struct {
	Plugin   string
	Image    string // as the plugin was asked: with registry, without tag
	Duration time.Duration
	Err      error // nil if it gave a good answer
}

// Plugins is the keyring of credential provider plugins: programs that are given
// an image and answer with credentials.
type Plugins struct {
	plugins []*plugin
	tokens  TokenSource
}

// A plugin is a configured credential provider.
type plugin struct {
	kubeletconfig.CredentialProvider
	dir      string
	environ  func() []string
	timeout  time.Duration
	log      *slog.Logger
	hooks    Hooks
	patterns []pattern
	cache    cache
	runs     singleflight.Group[[]entry]
}

// NewPlugins checks the providers as ReadProviders does and returns the keyring.
// It looks at no file; see Check.
func NewPlugins(c PluginsConfig) (*Plugins, error) {
	if len(c.Providers) == 0 {
		return &Plugins{}, nil
	}
	if c.Dir == "" {
		return nil, errors.New("credentials: PluginsConfig.Dir is empty")
	}
	if c.Timeout < 0 {
		return nil, errors.New("credentials: PluginsConfig.Timeout is negative")
	}
	if errs := validate(c.Providers); len(errs) > 0 {
		return nil, fmt.Errorf("credentials: PluginsConfig.Providers: %w", errors.Join(errs...))
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.Environ == nil {
		c.Environ = os.Environ
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Plugins{tokens: c.Tokens}
	for _, p := range c.Providers {
		pl := &plugin{CredentialProvider: p, dir: c.Dir, environ: c.Environ, timeout: c.Timeout, log: c.Logger, hooks: c.Hooks}
		pl.runs.WaitForCanceled = true
		for _, m := range p.MatchImages {
			pat, err := parsePattern(m)
			if err != nil {
				return nil, fmt.Errorf("credentials: PluginsConfig.Providers: matchImages of %q: pattern %w", p.Name, err)
			}
			pl.patterns = append(pl.patterns, pat)
		}
		k.plugins = append(k.plugins, pl)
	}
	return k, nil
}

// Check reports which plugins have no executable file. The kubelet does not
// start without them; whether an agent does is for its author to say.
func (k *Plugins) Check() error {
	var errs []error
	for _, p := range k.plugins {
		if _, err := p.executable(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// executable finds the program; on Windows its name may lack the .exe.
func (p *plugin) executable() (string, error) {
	path := filepath.Join(p.dir, p.Name)
	found, err := exec.LookPath(path)
	if err != nil {
		if e, ok := errors.AsType[*exec.Error](err); ok {
			err = plain(e.Err)
		}
		return "", fmt.Errorf("credentials: plugin %s: executable %s: %w", p.Name, path, err)
	}
	return found, nil
}

// Lookup implements Keyring: it asks the plugins whose matchImages match, at the
// same time, and sorts what they answer as if it were one config. A plugin that
// fails is left out and named in the error.
func (k *Plugins) Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error) {
	t, err := parseImage(image)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var asked []*plugin
	for _, p := range k.plugins {
		if slices.ContainsFunc(p.patterns, func(pat pattern) bool { return pat.matches(t) }) {
			asked = append(asked, p)
		}
	}
	answers := make([][]entry, len(asked))
	errs := make([]error, len(asked))
	var wg sync.WaitGroup
	for i, p := range asked {
		wg.Go(func() {
			if answers[i], errs[i] = p.entries(ctx, k.tokens, t, pod); errs[i] != nil {
				errs[i] = fmt.Errorf("credentials: plugin %s: %w", p.Name, errs[i])
			}
		})
	}
	wg.Wait()
	return pick(slices.Concat(answers...), t), errors.Join(errs...)
}

// Format prints how many plugins there are, whatever the verb.
func (k *Plugins) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%d credential provider plugins", len(k.plugins))
}

// entries returns what the plugin has for the image and the pod: from its cache,
// or by asking it.
func (p *plugin) entries(ctx context.Context, tokens TokenSource, t target, pod *v1.Pod) ([]entry, error) {
	var acct account
	if p.TokenAttributes != nil {
		var ask bool
		var err error
		if acct, ask, err = p.account(ctx, tokens, pod); err != nil || !ask {
			return nil, err
		}
	}
	// With an answer for all pods of the account there is no need of a token.
	whose := acct.key()
	if acct.name != "" && p.TokenAttributes.CacheType == kubeletconfig.ServiceAccountServiceAccountTokenCacheType {
		if found, ok := p.cache.get(t, whose, time.Now()); ok {
			return found, nil
		}
	}
	req := providerv1.CredentialProviderRequest{Image: t.name, ServiceAccountAnnotations: acct.annotations}
	if acct.name != "" {
		token, err := tokens.Token(ctx, pod, p.TokenAttributes.ServiceAccountTokenAudience)
		if err != nil {
			return nil, fmt.Errorf("get a token of service account %s/%s: %w", acct.namespace, acct.name, err)
		}
		if token == "" {
			return nil, fmt.Errorf("get a token of service account %s/%s: it is empty", acct.namespace, acct.name)
		}
		req.ServiceAccountToken = token
		if p.TokenAttributes.CacheType == kubeletconfig.TokenServiceAccountTokenCacheType {
			whose += mark(token)
		}
	}
	if found, ok := p.cache.get(t, whose, time.Now()); ok {
		return found, nil
	}
	// The answer says for which other images it is good; until then this one
	// image is what calls can share.
	return p.runs.Do(ctx, t.name+"\n"+whose, func(ctx context.Context) ([]entry, error) {
		if found, ok := p.cache.get(t, whose, time.Now()); ok {
			return found, nil // cached by a call that just returned
		}
		begun := time.Now()
		response, err := p.run(ctx, req)
		took := time.Since(begun)
		p.log.Debug("Ran credential provider plugin", "plugin", p.Name, "image", t.name, "took", took, "failed", err != nil)
		if p.hooks.PluginRan != nil {
			p.hooks.PluginRan(PluginRunInfo{Plugin: p.Name, Image: t.name, Duration: took, Err: err})
		}
		if err != nil {
			return nil, err
		}
		for _, bad := range response.ignored {
			p.log.Warn("Ignored invalid entry in response of credential provider plugin", "plugin", p.Name, "image", t.name, "err", bad)
		}
		source := Source{Plugin: p.Name}
		if acct.name != "" {
			source.Kind, source.Namespace, source.Name, source.UID = SourceServiceAccount, acct.namespace, acct.name, acct.uid
		}
		found := from(response.entries, source)
		p.cache.put(t, whose, response.scope, found, time.Now(), cmp.Or(response.duration, p.DefaultCacheDuration).Duration)
		return found, nil
	})
}

package credentials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/singleflight"
)

// A TokenSource supplies service accounts and their tokens. It is called concurrently, during
// Lookup. It may block, and must return when ctx is done.
type TokenSource interface {
	// ServiceAccount returns the service account. It is not modified.
	ServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)

	// Token returns a token of the pod's service account for the audience, bound to the
	// pod.
	Token(ctx context.Context, pod *v1.Pod, audience string) (string, error)
}

// PluginsConfig configures [Plugins].
type PluginsConfig struct {
	// Providers are the configured plugins; see ReadProviders. Credentials of earlier ones
	// precede those of later ones for the same key. If empty, the keyring is empty.
	Providers []kubeletconfig.CredentialProvider

	// Dir is the directory of the executables. Required unless Providers is empty. Files
	// in it are executed with the privileges and the environment of the agent, which usually
	// has the proxies and regions that plugins require.
	Dir string

	// Tokens supplies service account tokens. If nil, a plugin with TokenAttributes is
	// not called for pods with a service account, and not for any pod if it requires one;
	// Lookup then returns an error.
	Tokens TokenSource

	// Timeout limits one run of a plugin. Zero means one minute, as in the kubelet. With a
	// short timeout, pulls fail if a cloud's metadata service is slow.
	Timeout time.Duration

	// Logger receives a debug message for each run, and warnings. If nil, they are
	// discarded.
	Logger *slog.Logger

	// Hooks observe the runs of plugins.
	Hooks Hooks
}

// Hooks are called by [Plugins], concurrently, and must not block. Each may be nil.
type Hooks struct {
	// PluginRan is called after each run of a plugin, for the kubelet's metrics
	// kubelet_credential_provider_plugin_duration and _errors.
	PluginRan func(PluginRunInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.PluginRan, o.PluginRan)
	}
	return h
}

// A PluginRunInfo describes one run of a plugin.
type PluginRunInfo struct {
	Plugin   string
	Image    string // of the request: with registry, without tag
	Duration time.Duration
	Err      error // nil if the response was valid
}

// Plugins is the keyring of credential provider plugins: programs that return the credentials
// for an image. Safe for concurrent use.
type Plugins struct {
	plugins []*plugin
	tokens  TokenSource
}

// A plugin is a configured credential provider.
type plugin struct {
	kubeletconfig.CredentialProvider
	dir      string
	timeout  time.Duration
	log      *slog.Logger
	hooks    Hooks
	patterns []pattern
	cache    cache
	runs     singleflight.Group[[]entry]
}

// NewPlugins returns the keyring. It validates the providers as ReadProviders does, and accesses
// no files; see Check.
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
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Plugins{tokens: c.Tokens}
	for _, p := range c.Providers {
		pl := &plugin{CredentialProvider: p, dir: c.Dir, timeout: c.Timeout, log: c.Logger, hooks: c.Hooks}
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

// Check returns an error for each plugin without an executable file. The kubelet does not
// start in this case.
func (k *Plugins) Check() error {
	var errs []error
	for _, p := range k.plugins {
		if _, err := p.executable(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// executable returns the path of the program; on Windows the extension may be omitted.
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

// Lookup implements Keyring. It calls the plugins whose matchImages match, concurrently, and
// sorts their credentials as those of one docker config. The error names each plugin that
// failed.
func (k *Plugins) Lookup(ctx context.Context, image string, pod *v1.Pod) ([]Credential, error) {
	t, err := parseImage(image)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var called []*plugin
	for _, p := range k.plugins {
		if slices.ContainsFunc(p.patterns, func(pat pattern) bool { return pat.matches(t) }) {
			called = append(called, p)
		}
	}
	results := make([][]entry, len(called))
	errs := make([]error, len(called))
	var wg sync.WaitGroup
	for i, p := range called {
		wg.Go(func() {
			if results[i], errs[i] = p.entries(ctx, k.tokens, t, pod); errs[i] != nil {
				errs[i] = fmt.Errorf("credentials: plugin %s: %w", p.Name, errs[i])
			}
		})
	}
	wg.Wait()
	return matching(slices.Concat(results...), t), errors.Join(errs...)
}

// Format prints the number of plugins, for any verb.
func (k *Plugins) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%d credential provider plugins", len(k.plugins))
}

// entries returns the plugin's credentials for the image and the pod, cached or from a run.
func (p *plugin) entries(ctx context.Context, tokens TokenSource, t target, pod *v1.Pod) ([]entry, error) {
	var acct account
	if p.TokenAttributes != nil {
		var call bool
		var err error
		if acct, call, err = p.account(ctx, tokens, pod); err != nil || !call {
			return nil, err
		}
	}
	// No token is requested if a response for all pods of the account is cached.
	accountKey := acct.key()
	if acct.name != "" && p.TokenAttributes.CacheType == kubeletconfig.ServiceAccountServiceAccountTokenCacheType {
		if found, ok := p.cache.get(t, accountKey, time.Now()); ok {
			return found, nil
		}
	}
	req := providerv1.CredentialProviderRequest{Image: t.name, ServiceAccountAnnotations: acct.annotations}
	if acct.name != "" {
		token, err := tokens.Token(ctx, pod, p.TokenAttributes.ServiceAccountTokenAudience)
		if err != nil {
			return nil, fmt.Errorf("get token of service account %s/%s: %w", acct.namespace, acct.name, err)
		}
		if token == "" {
			return nil, fmt.Errorf("get token of service account %s/%s: empty token", acct.namespace, acct.name)
		}
		req.ServiceAccountToken = token
		if p.TokenAttributes.CacheType == kubeletconfig.TokenServiceAccountTokenCacheType {
			accountKey += tokenHash(token)
		}
	}
	if found, ok := p.cache.get(t, accountKey, time.Now()); ok {
		return found, nil
	}
	// The response determines the other images it applies to; calls can be shared only
	// for the same image.
	return p.runs.Do(ctx, t.name+"\n"+accountKey, func(ctx context.Context) ([]entry, error) {
		if found, ok := p.cache.get(t, accountKey, time.Now()); ok {
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
		found := withSource(response.entries, source)
		p.cache.put(t, accountKey, response.scope, found, time.Now(), cmp.Or(response.duration, p.DefaultCacheDuration).Duration)
		return found, nil
	})
}

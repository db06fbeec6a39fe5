package credentials_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func newPlugins(t *testing.T, c credentials.PluginsConfig) *credentials.Plugins {
	t.Helper()
	if c.Dir == "" {
		var names []string
		for _, p := range c.Providers {
			names = append(names, p.Name)
		}
		c.Dir = pluginDir(t, names...)
	}
	k, err := credentials.NewPlugins(c)
	require.NoError(t, err)
	return k
}

func TestAPluginIsAskedForImagesThatMatch(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	var runs []credentials.PluginRunInfo
	k := newPlugins(t, credentials.PluginsConfig{
		Providers: []kubeletconfig.CredentialProvider{provider("cloud", "Image", "PLUGIN_LOG="+log)},
		Hooks:     credentials.Hooks{PluginRan: func(i credentials.PluginRunInfo) { runs = append(runs, i) }},
	})
	require.NoError(t, k.Check())
	got, err := k.Lookup(t.Context(), "other.io/app", nil)
	require.NoError(t, err)
	assert.Empty(t, got)
	assert.Empty(t, requests(t, log))

	got, err = k.Lookup(t.Context(), "reg.io/team/app:1.2", nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.True(t, strings.HasPrefix(got[0].Username, "user of cloud"), got[0].Username)
	assert.Equal(t, "for reg.io/team/app ", got[0].Password)
	assert.Equal(t, credentials.Source{Plugin: "cloud"}, got[0].Source)
	assert.Equal(t, []pluginRequest{{
		APIVersion: "credentialprovider.kubelet.k8s.io/v1", Kind: "CredentialProviderRequest", Image: "reg.io/team/app",
	}}, requests(t, log))
	require.Len(t, runs, 1)
	assert.Equal(t, "cloud", runs[0].Plugin)
	assert.Equal(t, "reg.io/team/app", runs[0].Image)
	assert.NoError(t, runs[0].Err)
}

func TestAPluginIsAskedInItsVersion(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		p := provider("cloud", "Image")
		p.APIVersion = "credentialprovider.kubelet.k8s.io/" + version
		got, err := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p}}).Lookup(t.Context(), "reg.io/app", nil)
		require.NoError(t, err, version)
		assert.Len(t, got, 1)
	}
}

func TestResponsesAreCachedAsSpecified(t *testing.T) {
	for _, c := range []struct {
		mode, keep string // the response's cache key type and duration; "" for no duration
		second     string // the image after reg.io/a
		later      time.Duration
		runs       int
	}{
		{mode: "Image", second: "reg.io/a", runs: 1},
		{mode: "Image", second: "reg.io/a:tag", runs: 1},
		{mode: "Image", second: "reg.io/b", runs: 2},
		{mode: "Registry", second: "reg.io/b", runs: 1},
		{mode: "Registry", second: "reg2.io/b", runs: 2},
		{mode: "Global", second: "reg2.io/b", runs: 1},
		{mode: "Image", second: "reg.io/a", later: time.Hour - time.Second, runs: 1},
		{mode: "Image", second: "reg.io/a", later: time.Hour, runs: 2},
		{mode: "Image", keep: "5m", second: "reg.io/a", later: 4 * time.Minute, runs: 1},
		{mode: "Image", keep: "5m", second: "reg.io/a", later: 5 * time.Minute, runs: 2},
		{mode: "Image", keep: "2h", second: "reg.io/a", later: 90 * time.Minute, runs: 1},
		{mode: "Image", keep: "0s", second: "reg.io/a", runs: 2},
		{mode: "Image", keep: "-1s", second: "reg.io/a", runs: 2},
		{mode: "fail", second: "reg.io/a", runs: 2},
	} {
		t.Run(fmt.Sprintf("%s %s then %s after %v", c.mode, c.keep, c.second, c.later), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			p := provider("cloud", c.mode, "PLUGIN_LOG="+log, "PLUGIN_KEEP="+c.keep)
			p.MatchImages = []string{"reg.io", "reg2.io"}
			dir := pluginDir(t, "cloud")
			synctest.Test(t, func(t *testing.T) {
				k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p}, Dir: dir})
				for _, image := range []string{"reg.io/a", c.second} {
					_, err := k.Lookup(t.Context(), image, nil)
					assert.Equal(t, c.mode == "fail", err != nil, "%v", err)
					time.Sleep(c.later)
				}
			})
			assert.Len(t, requests(t, log), c.runs)
		})
	}
}

func TestWithoutADefaultDurationNothingIsCached(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p := provider("cloud", "Global", "PLUGIN_LOG="+log)
	p.DefaultCacheDuration = &metav1.Duration{Duration: 0}
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p}})
	for range 2 {
		_, err := k.Lookup(t.Context(), "reg.io/a", nil)
		require.NoError(t, err)
	}
	assert.Len(t, requests(t, log), 2)
}

func TestAPluginThatFailsHidesNoOther(t *testing.T) {
	response := func(fields string) string {
		return `raw:{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",` + fields + `}`
	}
	for _, c := range []struct{ name, mode, wantErr string }{
		{"it exits with an error", "fail", "run for image reg.io/app: exit status 3"},
		{"it writes too much to stderr", "shout", "run for image reg.io/app: exit status 1"},
		{"it writes too much to stdout", "flood", "run for image reg.io/app: wrote more than 1048576 bytes"},
		{"it writes nothing", "raw:\n", "response for image reg.io/app: is empty"},
		{"no JSON", "raw:hunter2", "response for image reg.io/app: not JSON, at byte 1"},
		{"two answers", response(`"cacheKeyType":"Image"`) + "{}", "not JSON"},
		{"another kind", `raw:{"kind":"hunter2","apiVersion":"credentialprovider.kubelet.k8s.io/v1"}`, "kind is not CredentialProviderResponse"},
		{"another version", `raw:{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1"}`, "apiVersion is not credentialprovider.kubelet.k8s.io/v1, the version of the request"},
		{"an unknown field", response(`"cacheKeyType":"Image","hunter2":1`), "has an unknown or repeated field"},
		{"a field in different case", response(`"cachekeytype":"Image"`), "has an unknown or repeated field"},
		{"a repeated field", response(`"cacheKeyType":"Image","cacheKeyType":"Image"`), "has an unknown or repeated field"},
		{"a field of a wrong type", response(`"cacheKeyType":"Image","auth":"hunter2"`), "a field has the wrong type"},
		{"an invalid duration", response(`"cacheKeyType":"Image","cacheDuration":"hunter2"`), "a field has the wrong type"},
		{"no cache key", response(`"auth":{}`), "cacheKeyType is not Image, Registry or Global"},
		{"another cache key", response(`"cacheKeyType":"hunter2"`), "cacheKeyType is not Image, Registry or Global"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{provider("bad", c.mode), provider("good", "Image")}})
			got, err := k.Lookup(t.Context(), "reg.io/app", nil)
			require.ErrorContains(t, err, c.wantErr)
			assert.True(t, strings.HasPrefix(err.Error(), "credentials: plugin bad: "), err.Error())
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "cannot reach the cloud", "stderr may contain credentials")
			assert.Less(t, len(err.Error()), 200)
			require.Len(t, got, 1)
			assert.Equal(t, "good", got[0].Source.Plugin)
		})
	}
}

func TestAnswersOfSeveralPluginsAreSortedAsOne(t *testing.T) {
	raw := func(auth string) string {
		return `raw:{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image","auth":{` + auth + `}}`
	}
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{
		provider("a", raw(`"*.io":{"username":"a glob"},"reg.io":{"username":"a host"},"bad key":{"username":"no"}`)),
		provider("b", raw(`"reg.io":{"username":"b host"},"reg.io/team":{"username":"b team"},"other.io":{"username":"b other"}`)),
		provider("c", raw(``)),
	}})
	for range 2 { // asked, and from the cache
		got, err := k.Lookup(t.Context(), "reg.io/team/app", nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"b team", "a host", "b host", "a glob"}, users(got))
	}
}

func TestAPluginHasItsTimeAndNoMore(t *testing.T) {
	k := newPlugins(t, credentials.PluginsConfig{
		Providers: []kubeletconfig.CredentialProvider{provider("slow", "hang")},
		Timeout:   50 * time.Millisecond,
	})
	_, err := k.Lookup(t.Context(), "reg.io/app", nil)
	require.EqualError(t, err, "credentials: plugin slow: run for image reg.io/app: no answer within 50ms")
}

func TestAChildThatAPluginLeavesBlocksNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the child would keep the directory of plugins from being removed")
	}
	t.Parallel()
	begun := time.Now()
	got, err := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{provider("cloud", "orphan")}}).Lookup(t.Context(), "reg.io/app", nil)
	require.NoError(t, err)
	assert.Len(t, got, 1)
	assert.Less(t, time.Since(begun), 90*time.Second)
}

func TestALookupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer calls.Close()
	require.NoError(t, calls.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)))
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{provider("slow", "hang", "PLUGIN_CALL="+calls.Addr().String())}})
	done := make(chan error)
	go func() {
		_, err := k.Lookup(ctx, "reg.io/app", nil)
		done <- err
	}()
	conn, err := calls.Accept()
	require.NoError(t, err, "the plugin runs")
	defer conn.Close()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "the plugin is gone")

	_, err = k.Lookup(ctx, "reg.io/app", nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestLookupsOfOneImageShareARun(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{provider("cloud", "Image", "PLUGIN_LOG="+log)}})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got, err := k.Lookup(t.Context(), "reg.io/app", nil)
			assert.NoError(t, err)
			assert.Len(t, got, 1)
		})
	}
	wg.Wait()
	assert.Len(t, requests(t, log), 1)
}

func TestServiceAccountsShareNoRun(t *testing.T) {
	for name, cache := range map[string]kubeletconfig.ServiceAccountTokenCacheType{
		"a response per token":           kubeletconfig.TokenServiceAccountTokenCacheType,
		"a response per service account": kubeletconfig.ServiceAccountServiceAccountTokenCacheType,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer gate.Close()
			require.NoError(t, gate.(*net.TCPListener).SetDeadline(time.Now().Add(90*time.Second)))
			p := provider("cloud", "Image", "PLUGIN_GATE="+gate.Addr().String())
			p.TokenAttributes = &kubeletconfig.ServiceAccountTokenAttributes{ServiceAccountTokenAudience: "registry", CacheType: cache, RequireServiceAccount: new(true)}
			k := newPlugins(t, credentials.PluginsConfig{
				Providers: []kubeletconfig.CredentialProvider{p},
				Tokens:    &tokens{account: &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}},
			})
			lookup := func(pod *v1.Pod) chan string {
				password := make(chan string, 1)
				go func() {
					got, err := k.Lookup(t.Context(), "reg.io/app", pod)
					if assert.NoError(t, err) && assert.Len(t, got, 1) {
						password <- got[0].Password
					}
					close(password)
				}()
				return password
			}
			first := lookup(pod("a", "web"))
			held, err := gate.Accept()
			require.NoError(t, err)
			second := lookup(pod("b", "other")) // while the run for the first is in progress
			accepted := make(chan struct{})
			go func() {
				defer close(accepted)
				if conn, err := gate.Accept(); err == nil {
					conn.Close()
				}
			}()
			select {
			case <-accepted:
			case <-time.After(5 * time.Second): // the second lookup shares the run, or the machine is slow
			}
			held.Close()
			assert.Equal(t, "for reg.io/app hunter2-a-registry", <-first)
			assert.Equal(t, "for reg.io/app hunter2-b-registry", <-second)
		})
	}
}

func TestAMissingPlugin(t *testing.T) {
	dir := t.TempDir()
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{provider("none", "Image")}, Dir: dir})
	_, err := k.Lookup(t.Context(), "reg.io/app", nil)
	require.ErrorContains(t, err, "credentials: plugin none: ")
	require.ErrorContains(t, err, filepath.Join(dir, "none"))
	require.ErrorContains(t, k.Check(), "credentials: plugin none: executable "+filepath.Join(dir, "none")+": ")
}

func TestPluginsConfigIsChecked(t *testing.T) {
	for wantErr, c := range map[string]credentials.PluginsConfig{
		"credentials: PluginsConfig.Dir is empty":                                                              {Providers: []kubeletconfig.CredentialProvider{provider("x", "Image")}},
		"credentials: PluginsConfig.Timeout is negative":                                                       {Providers: []kubeletconfig.CredentialProvider{provider("x", "Image")}, Dir: "d", Timeout: -1},
		`credentials: PluginsConfig.Providers: providers[0].name: "../x" is not a plain file name: it has '/'`: {Providers: []kubeletconfig.CredentialProvider{provider("../x", "Image")}, Dir: "d"},
	} {
		_, err := credentials.NewPlugins(c)
		require.EqualError(t, err, wantErr)
	}
	k, err := credentials.NewPlugins(credentials.PluginsConfig{})
	require.NoError(t, err)
	got, err := k.Lookup(t.Context(), "reg.io/app", nil)
	require.NoError(t, err)
	assert.Empty(t, got)
	_, err = k.Lookup(t.Context(), "Not An Image", nil)
	require.ErrorContains(t, err, "couldn't parse image name")
	assert.Equal(t, "0 credential provider plugins", fmt.Sprintf("%+v", k))
}

// tokens is a TokenSource with one service account per namespace.
type tokens struct {
	account *v1.ServiceAccount
	err     error
	mu      sync.Mutex
	given   int // tokens, each with its number
	fresh   bool
}

func (s *tokens) ServiceAccount(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	return s.account, s.err
}

func (s *tokens) Token(_ context.Context, pod *v1.Pod, audience string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
	token := "hunter2-" + pod.Name + "-" + audience
	if s.fresh {
		token += fmt.Sprint("-", s.given)
	}
	return token, nil
}

func pod(name, account string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1.PodSpec{ServiceAccountName: account},
	}
}

// KEP-4412
func TestAPluginReceivesTheTokenOfAServiceAccount(t *testing.T) {
	attributes := kubeletconfig.ServiceAccountTokenAttributes{ServiceAccountTokenAudience: "registry", CacheType: kubeletconfig.TokenServiceAccountTokenCacheType,
		RequireServiceAccount: new(true), RequiredServiceAccountAnnotationKeys: []string{"reg.io/id"}, OptionalServiceAccountAnnotationKeys: []string{"reg.io/tenant"}}
	account := func(annotations map[string]string) *v1.ServiceAccount {
		return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Annotations: annotations}}
	}
	with := account(map[string]string{"reg.io/id": "7", "other": "x"})
	for _, c := range []struct {
		name    string
		change  func(*kubeletconfig.ServiceAccountTokenAttributes)
		source  credentials.TokenSource
		pods    []*v1.Pod
		wantErr string
		asked   []string // the token of each run
	}{
		{name: "the plugin receives a token of the pod", source: &tokens{account: with}, pods: []*v1.Pod{pod("a", "web")}, asked: []string{"hunter2-a-registry"}},
		{name: "a response per token is cached for that pod", source: &tokens{account: with},
			pods: []*v1.Pod{pod("a", "web"), pod("a", "web"), pod("b", "web")}, asked: []string{"hunter2-a-registry", "hunter2-b-registry"}},
		{name: "a new token causes a new run", source: &tokens{account: with, fresh: true},
			pods: []*v1.Pod{pod("a", "web"), pod("a", "web")}, asked: []string{"hunter2-a-registry-1", "hunter2-a-registry-2"}},
		{name: "a response per service account is cached for its pods", source: &tokens{account: with},
			change: func(a *kubeletconfig.ServiceAccountTokenAttributes) {
				a.CacheType = kubeletconfig.ServiceAccountServiceAccountTokenCacheType
			},
			pods: []*v1.Pod{pod("a", "web"), pod("b", "web"), pod("c", "other")}, asked: []string{"hunter2-a-registry", "hunter2-c-registry"}},
		{name: "a pod without service account is left out", source: &tokens{account: with}, pods: []*v1.Pod{pod("a", ""), nil}},
		{name: "or is asked for without a token", source: &tokens{account: with},
			change: func(a *kubeletconfig.ServiceAccountTokenAttributes) {
				a.RequireServiceAccount, a.RequiredServiceAccountAnnotationKeys = new(false), nil
			},
			pods: []*v1.Pod{pod("a", ""), nil}, asked: []string{""}},
		{name: "an account without a required annotation is left out", source: &tokens{account: account(nil)}, pods: []*v1.Pod{pod("a", "web")}},
		{name: "an account that cannot be read", source: &tokens{err: errors.New("forbidden")}, pods: []*v1.Pod{pod("a", "web")},
			wantErr: "credentials: plugin cloud: get service account shop/web: forbidden"},
		{name: "an account that does not exist", source: &tokens{}, pods: []*v1.Pod{pod("a", "web")},
			wantErr: "credentials: plugin cloud: get service account shop/web: not found"},
		{name: "no source of tokens", pods: []*v1.Pod{pod("a", "web")},
			wantErr: "credentials: plugin cloud: not called: requires service account tokens, but there is no TokenSource"},
		{name: "no source of tokens, and no account", pods: []*v1.Pod{pod("a", "")},
			wantErr: "credentials: plugin cloud: not called: requires service account tokens, but there is no TokenSource"},
		{name: "no source of tokens, which are not required", pods: []*v1.Pod{pod("a", "")},
			change: func(a *kubeletconfig.ServiceAccountTokenAttributes) {
				a.RequireServiceAccount, a.RequiredServiceAccountAnnotationKeys = new(false), nil
			}, asked: []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			p := provider("cloud", "Registry", "PLUGIN_LOG="+log)
			a := attributes
			if c.change != nil {
				c.change(&a)
			}
			p.TokenAttributes = &a
			k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p}, Tokens: c.source})
			for _, pod := range c.pods {
				got, err := k.Lookup(t.Context(), "reg.io/app", pod)
				if c.wantErr != "" {
					require.EqualError(t, err, c.wantErr)
					continue
				}
				require.NoError(t, err)
				if len(c.asked) == 0 {
					assert.Empty(t, got)
					continue
				}
				require.Len(t, got, 1)
				want := credentials.Source{Plugin: "cloud"}
				if name := accountOf(pod); name != "" {
					want = credentials.Source{Kind: credentials.SourceServiceAccount, Namespace: "shop", Name: name, UID: "u1", Plugin: "cloud"}
				}
				assert.Equal(t, want, got[0].Source)
			}
			var asked []string
			for _, r := range requests(t, log) {
				asked = append(asked, r.Token)
				if r.Token != "" {
					assert.Equal(t, map[string]string{"reg.io/id": "7"}, r.Annotations)
				}
			}
			assert.Equal(t, c.asked, asked)
		})
	}
}

func accountOf(pod *v1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Spec.ServiceAccountName
}

func TestAnAnswerEndsWithItsServiceAccount(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	source := &tokens{account: &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}}
	p := provider("cloud", "Global", "PLUGIN_LOG="+log)
	p.TokenAttributes = &kubeletconfig.ServiceAccountTokenAttributes{ServiceAccountTokenAudience: "registry", CacheType: kubeletconfig.ServiceAccountServiceAccountTokenCacheType,
		RequireServiceAccount: new(true), OptionalServiceAccountAnnotationKeys: []string{"tenant"}}
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p}, Tokens: source})
	for _, want := range []struct {
		change func()
		runs   int
	}{
		{func() {}, 1},
		{func() {}, 1},
		{func() { source.account.UID = "u2" }, 2},
		{func() { source.account.Annotations = map[string]string{"tenant": "a"} }, 3},
		{func() { source.account.Annotations = map[string]string{"tenant": "b"} }, 4},
		{func() { source.account.Annotations["other"] = "x" }, 4},
	} {
		want.change()
		_, err := k.Lookup(t.Context(), "reg.io/app", pod("a", "web"))
		require.NoError(t, err)
		assert.Len(t, requests(t, log), want.runs)
	}
	assert.Equal(t, 4, source.given, "no token for a cached response")
}

// The stderr of a plugin may contain credentials, and errors reach the events of pods.
func TestStderrOfAPluginIsLoggedOnly(t *testing.T) {
	for mode, logged := range map[string]string{"fail": "cannot reach the cloud with", "shout": "x the end"} {
		t.Run(mode, func(t *testing.T) {
			var log bytes.Buffer
			k := newPlugins(t, credentials.PluginsConfig{
				Providers: []kubeletconfig.CredentialProvider{provider("cloud", mode)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			_, err := k.Lookup(t.Context(), "reg.io/app", nil)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), logged)
			assert.Contains(t, log.String(), logged)
			assert.Less(t, log.Len(), 3<<10)
		})
	}
}

func TestATokenIsNeitherInTheErrorNorInTheLog(t *testing.T) {
	p := provider("cloud", "fail")
	var log bytes.Buffer
	p.TokenAttributes = &kubeletconfig.ServiceAccountTokenAttributes{ServiceAccountTokenAudience: "registry", CacheType: kubeletconfig.TokenServiceAccountTokenCacheType, RequireServiceAccount: new(true)}
	k := newPlugins(t, credentials.PluginsConfig{Providers: []kubeletconfig.CredentialProvider{p},
		Tokens: &tokens{account: &v1.ServiceAccount{}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := k.Lookup(t.Context(), "reg.io/app", pod("a", "web"))
	require.EqualError(t, err, "credentials: plugin cloud: run for image reg.io/app: exit status 3")
	assert.Contains(t, log.String(), "cannot reach the cloud with [token]")
}

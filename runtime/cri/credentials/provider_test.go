package credentials_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

const providerYAML = `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  matchImages: ["*.dkr.ecr.*.amazonaws.com", "reg.io:8080/path"]
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get, --fast]
  env:
  - name: REGION
    value: eu
  tokenAttributes:
    serviceAccountTokenAudience: registry
    cacheType: ServiceAccount
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [reg.io/identity]
    optionalServiceAccountAnnotationKeys: [reg.io/tenant]
`

func TestAProviderConfigIsRead(t *testing.T) {
	got, err := credentials.ParseProviders([]byte(providerYAML))
	require.NoError(t, err)
	assert.Equal(t, []kubeletconfig.CredentialProvider{{
		Name:                 "ecr",
		MatchImages:          []string{"*.dkr.ecr.*.amazonaws.com", "reg.io:8080/path"},
		DefaultCacheDuration: &metav1.Duration{Duration: 12 * time.Hour},
		APIVersion:           "credentialprovider.kubelet.k8s.io/v1",
		Args:                 []string{"get", "--fast"},
		Env:                  []kubeletconfig.ExecEnvVar{{Name: "REGION", Value: "eu"}},
		TokenAttributes: &kubeletconfig.ServiceAccountTokenAttributes{
			ServiceAccountTokenAudience: "registry", CacheType: kubeletconfig.ServiceAccountServiceAccountTokenCacheType, RequireServiceAccount: new(true),
			RequiredServiceAccountAnnotationKeys: []string{"reg.io/identity"}, OptionalServiceAccountAnnotationKeys: []string{"reg.io/tenant"},
		},
	}}, got)
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		got, err := credentials.ParseProviders([]byte(`{"apiVersion":"kubelet.config.k8s.io/` + version + `","kind":"CredentialProviderConfig","providers":[
			{"name":"x","matchImages":["reg.io"],"defaultCacheDuration":"0","apiVersion":"credentialprovider.kubelet.k8s.io/` + version + `"}]}`))
		require.NoError(t, err, version)
		assert.Len(t, got, 1)
	}
}

func TestInvalidProviderConfigs(t *testing.T) {
	// provider returns a config with one valid provider and the fields in more.
	provider := func(more string) string {
		return "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n" +
			"- {matchImages: [reg.io], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1, " + more + "}\n"
	}
	tokens := func(more string) string {
		return provider("name: x, tokenAttributes: {" + more + "}")
	}
	const v1Only = "name: x, matchImages: [reg.io], defaultCacheDuration: 1m"
	raw := func(fields string) string {
		return "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- {" + fields + "}\n"
	}
	for _, c := range []struct{ name, data, wantErr string }{
		{"no YAML", "{", "yaml"},
		{"another kind", "apiVersion: v1\nkind: Pod\n", `kind: is "Pod", not CredentialProviderConfig`},
		{"another version", "apiVersion: kubelet.config.k8s.io/v2\nkind: CredentialProviderConfig\n", `apiVersion: is "kubelet.config.k8s.io/v2"`},
		{"no providers", "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n", "providers: is required"},
		{"an unknown field", provider("name: x, matchImage: y"), `unknown field "providers[0].matchImage"`},
		{"a field of a wrong type", provider("name: [x]"), "name"},
		{"a repeated key", "kind: a\nkind: b\n", `"kind" already set`},
		{"no name", provider("args: [x]"), "providers[0].name: is required"},
		{"a path", provider("name: ../sh"), `providers[0].name: "../sh" is not a plain file name: it has '/'`},
		{"an absolute path", provider("name: /bin/sh"), `providers[0].name: "/bin/sh" is not a plain file name`},
		{"a path of Windows", provider(`name: '..\cmd'`), `providers[0].name: "..\\cmd" is not a plain file name`},
		{"a drive", provider(`name: 'c:cmd'`), `providers[0].name: "c:cmd" is not a plain file name: it has ':'`},
		{"the directory", provider("name: ."), `providers[0].name: "." is not a file name`},
		{"its parent", provider("name: .."), `providers[0].name: ".." is not a file name`},
		{"a space", provider("name: a b"), `providers[0].name: "a b" is not a plain file name: it has ' '`},
		{"a zero byte", provider(`name: "a\0b"`), `is not a plain file name`},
		{"a name twice", provider("name: x") + "- {name: x, matchImages: [a], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n", `providers[1].name: "x" is a duplicate`},
		{"no images", raw("name: x, defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1"), "providers[0].matchImages: is required"},
		{"a bad pattern", raw(`name: x, matchImages: [ok.io, "a[.io"], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1`), `providers[0].matchImages[1]: pattern "a[" is not a glob`},
		{"no duration", raw("name: x, matchImages: [a], apiVersion: credentialprovider.kubelet.k8s.io/v1"), "providers[0].defaultCacheDuration: is required"},
		{"a negative duration", raw("name: x, matchImages: [a], defaultCacheDuration: -1s, apiVersion: credentialprovider.kubelet.k8s.io/v1"), "providers[0].defaultCacheDuration: is negative"},
		{"no version", raw(v1Only), `providers[0].apiVersion: is "", not one of credentialprovider.kubelet.k8s.io/v1,`},
		{"a version without group", raw(v1Only + ", apiVersion: v1"), `providers[0].apiVersion: is "v1"`},
		{"a variable without name", provider("name: x, env: [{value: z}]"), `providers[0].env[0].name: "" is not a variable name`},
		{"a variable with =", provider("name: x, env: [{name: a=b, value: z}]"), `providers[0].env[0].name: "a=b"`},
		{"a zero byte in a value", provider(`name: x, env: [{name: a, value: "\0"}]`), `providers[0].env[0].value: contains a NUL byte`},
		{"a zero byte in an argument", provider(`name: x, args: ["\0"]`), `providers[0].args[0]: contains a NUL byte`},

		{"no audience", tokens("cacheType: Token, requireServiceAccount: true"), "providers[0].tokenAttributes.serviceAccountTokenAudience: is required"},
		{"no cache type", tokens("serviceAccountTokenAudience: a, requireServiceAccount: true"), "providers[0].tokenAttributes.cacheType: is required"},
		{"another cache type", tokens("serviceAccountTokenAudience: a, requireServiceAccount: true, cacheType: Pod"), `providers[0].tokenAttributes.cacheType: is "Pod"`},
		{"no word on accounts", tokens("serviceAccountTokenAudience: a, cacheType: Token"), "providers[0].tokenAttributes.requireServiceAccount: is required"},
		{"a plugin version without tokens", raw(v1Only + ", apiVersion: credentialprovider.kubelet.k8s.io/v1beta1, tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true}"), "requires apiVersion credentialprovider.kubelet.k8s.io/v1, not"},
		{"annotations of no account", tokens("serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a]"), "requiredServiceAccountAnnotationKeys: needs requireServiceAccount"},
		{"a bad annotation", tokens("serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, optionalServiceAccountAnnotationKeys: ['a b']"), `optionalServiceAccountAnnotationKeys[0]: "a b" is not an annotation key`},
		{"an annotation twice", tokens("serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [a], optionalServiceAccountAnnotationKeys: [a]"), `optionalServiceAccountAnnotationKeys[0]: "a" is a duplicate`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := credentials.ParseProviders([]byte(c.data))
			require.ErrorContains(t, err, c.wantErr)
			assert.Empty(t, got)
		})
	}
}

func TestADirectoryOfProviderConfigsIsReadInOrder(t *testing.T) {
	file := func(name string) string {
		return "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- {name: " + name +
			", matchImages: [reg.io], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n"
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "20.yaml"), file("second"))
	write(t, filepath.Join(dir, "10.yml"), file("first"))
	write(t, filepath.Join(dir, "README.md"), "not a config")
	write(t, filepath.Join(dir, "sub.yaml", "x.yaml"), "not looked at")
	got, err := credentials.ReadProviders(dir)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "first", got[0].Name)
	assert.Equal(t, "second", got[1].Name)

	got, err = credentials.ReadProviders(filepath.Join(dir, "20.yaml"))
	require.NoError(t, err)
	assert.Len(t, got, 1)

	bad, again := filepath.Join(dir, "30.json"), filepath.Join(dir, "40.yaml")
	write(t, bad, "{}")
	write(t, again, file("first"))
	_, err = credentials.ReadProviders(dir)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "credentials: provider config "+bad+`: kind: is ""`)
	assert.Contains(t, err.Error(), "credentials: provider config "+again+`: provider "first" is already defined in `+filepath.Join(dir, "10.yml"))

	_, err = credentials.ReadProviders(t.TempDir())
	require.ErrorContains(t, err, "no .json, .yaml or .yml file")
	_, err = credentials.ReadProviders(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "credentials: provider config "+filepath.Join(dir, "none")+": ")
}

func FuzzParseProviders(f *testing.F) {
	f.Add([]byte(providerYAML))
	f.Add([]byte(`{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","providers":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		providers, err := credentials.ParseProviders(data)
		if err != nil {
			return
		}
		// NewPlugins accepts the parsed providers.
		_, err = credentials.NewPlugins(credentials.PluginsConfig{Providers: providers, Dir: "x"})
		require.NoError(t, err)
	})
}

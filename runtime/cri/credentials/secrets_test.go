package credentials_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

// secret returns a pull secret of the namespace shop.
func secret(name string, kind v1.SecretType, key, data string) v1.Secret {
	return v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
		Type:       kind,
		Data:       map[string][]byte{key: []byte(data)},
	}
}

func jsonSecret(name, data string) v1.Secret {
	return secret(name, v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, data)
}

func auth(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// users returns the user names in their order.
func users(creds []credentials.Credential) []string {
	var names []string
	for _, c := range creds {
		names = append(names, c.Username)
	}
	return names
}

func TestDockerConfigsAreRead(t *testing.T) {
	for _, c := range []struct {
		name, entry string
		want        credentials.Credential
	}{
		{"auth", `{"auth":"` + auth("bob", "pw") + `"}`, credentials.Credential{Username: "bob", Password: "pw"}},
		{"auth without padding", `{"auth":"` + strings.TrimRight(auth("bob", "pww"), "=") + `"}`, credentials.Credential{Username: "bob", Password: "pww"}},
		{"auth with a colon in the password", `{"auth":"` + auth("bob", "p:w") + `"}`, credentials.Credential{Username: "bob", Password: "p:w"}},
		{"user and password", `{"username":"bob","password":"pw","email":"b@x"}`, credentials.Credential{Username: "bob", Password: "pw", Email: "b@x"}},
		{"auth takes precedence", `{"username":"eve","password":"no","auth":"` + auth("bob", "pw") + `"}`, credentials.Credential{Username: "bob", Password: "pw"}},
		{"identity token", `{"auth":"` + auth("bob", "") + `","identitytoken":"idt"}`, credentials.Credential{IdentityToken: "idt"}},
		{"identity token and a password", `{"auth":"` + auth("bob", "pw") + `","identitytoken":"idt"}`, credentials.Credential{Username: "bob", Password: "pw", IdentityToken: "idt"}},
		{"registry token", `{"registrytoken":"rt"}`, credentials.Credential{RegistryToken: "rt"}},
		{"nothing", `{}`, credentials.Credential{}},
		{"unknown fields", `{"username":"bob","password":"pw","x":1}`, credentials.Credential{Username: "bob", Password: "pw"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range []v1.Secret{
				jsonSecret("regcred", `{"auths":{"reg.io":`+c.entry+`}}`),
				secret("regcred", v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"reg.io":`+c.entry+`}`),
			} {
				keyring, err := credentials.FromSecrets([]v1.Secret{s})
				require.NoError(t, err)
				got, err := keyring.Lookup(t.Context(), "reg.io/app", nil)
				require.NoError(t, err)
				require.Len(t, got, 1)
				want := c.want
				for key := range s.Data {
					want.Source = credentials.Source{Kind: credentials.SourceSecret, Namespace: "shop", Name: "regcred", UID: "uid-regcred", Key: key}
				}
				assert.True(t, want == got[0], "got user %q, tokens %q %q", got[0].Username, got[0].IdentityToken, got[0].RegistryToken)
			}
		})
	}
}

func TestCredentialsAreTriedMostSpecificFirst(t *testing.T) {
	keyring, err := credentials.FromSecrets([]v1.Secret{
		jsonSecret("a", `{"auths":{
			"*.reg.io":{"username":"glob"},
			"eu.reg.io":{"username":"host"},
			"https://eu.reg.io":{"username":"host again"},
			"eu.reg.io/team":{"username":"team"},
			"eu.reg.io/team/app":{"username":"app"},
			"eu.reg.io/other":{"username":"other"},
			"us.reg.io":{"username":"us"}}}`),
		jsonSecret("b", `{"auths":{"eu.reg.io/team":{"username":"team of b"},"eu.reg.io":{"username":"host of b"}}}`),
	})
	require.NoError(t, err)
	for _, c := range []struct {
		image string
		want  []string
	}{
		{"eu.reg.io/team/app:1", []string{"app", "team", "team of b", "host", "host again", "host of b", "glob"}},
		{"eu.reg.io/team/x", []string{"team", "team of b", "host", "host again", "host of b", "glob"}},
		{"us.reg.io/x", []string{"us", "glob"}},
		{"reg.io/x", nil},
		{"nginx", nil},
	} {
		got, err := keyring.Lookup(t.Context(), c.image, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, users(got), c.image)
	}
	_, err = keyring.Lookup(t.Context(), "Not An Image", nil)
	assert.ErrorContains(t, err, "couldn't parse image name")
}

func TestTheDefaultRegistryHasTwoNames(t *testing.T) {
	keyring, err := credentials.FromSecrets([]v1.Secret{
		jsonSecret("hub", `{"auths":{"https://index.docker.io/v1/":{"username":"index"},"docker.io":{"username":"short"}}}`),
	})
	require.NoError(t, err)
	for _, image := range []string{"nginx", "library/nginx", "docker.io/nginx", "index.docker.io/library/nginx", "bob/app:1"} {
		got, err := keyring.Lookup(t.Context(), image, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"short", "index"}, users(got), image)
	}
}

func TestAPullSecretThatCannotBeReadHidesNoOther(t *testing.T) {
	good := jsonSecret("good", `{"auths":{"reg.io":{"username":"bob","password":"pw"}}}`)
	for _, c := range []struct {
		name    string
		bad     v1.Secret
		wantErr string
	}{
		{"no JSON", jsonSecret("bad", `{"auths":{"reg.io"hunter2`), `key .dockerconfigjson: not JSON, at byte 19`},
		{"not an object", jsonSecret("bad", `["hunter2"]`), `key .dockerconfigjson: is not a JSON object`},
		{"auths of a wrong type", jsonSecret("bad", `{"auths":"hunter2"}`), `key .dockerconfigjson: field auths has the wrong type`},
		{"no auths: the old format under the new type", jsonSecret("bad", `{"reg.io":{"password":"hunter2"}}`), `key .dockerconfigjson: no auths`},
		{"the old format, not JSON", secret("bad", v1.SecretTypeDockercfg, v1.DockerConfigKey, `hunter2`), `key .dockercfg: not JSON, at byte 1`},
		{"auth is not base64", jsonSecret("bad", `{"auths":{"reg.io":{"auth":"hunter2!"}}}`), `key .dockerconfigjson: "reg.io": auth is not base64(username:password)`},
		{"auth without colon", jsonSecret("bad", `{"auths":{"reg.io":{"auth":"`+base64.StdEncoding.EncodeToString([]byte("hunter2"))+`"}}}`), `key .dockerconfigjson: "reg.io": auth is not base64(username:password)`},
		{"a password of a wrong type", jsonSecret("bad", `{"auths":{"reg.io":{"password":{"hunter2":1}}}}`), `key .dockerconfigjson: "reg.io": field password has the wrong type`},
		{"a key that is not a registry", jsonSecret("bad", `{"auths":{"reg io":{"password":"hunter2"}}}`), `key .dockerconfigjson: key "reg io" has a space or control character`},
		{"a key with a password", jsonSecret("bad", `{"auths":{"https://bob:hunter2@reg.io":{}}}`), `key .dockerconfigjson: key with an @ is not a registry`},
		{"another type", secret("bad", v1.SecretTypeOpaque, v1.DockerConfigJsonKey, `hunter2`), `type "Opaque" is not a pull secret type`},
		{"the key is missing", jsonSecret("bad", ``), `key .dockerconfigjson is missing or empty`},
		{"the key of the other type", secret("bad", v1.SecretTypeDockercfg, v1.DockerConfigJsonKey, `{}`), `key .dockercfg is missing or empty`},
	} {
		t.Run(c.name, func(t *testing.T) {
			keyring, err := credentials.FromSecrets([]v1.Secret{c.bad, good})
			require.Error(t, err)
			assert.Equal(t, "credentials: secret shop/bad: "+c.wantErr, err.Error())
			assert.NotContains(t, err.Error(), "hunter2")
			got, err := keyring.Lookup(t.Context(), "reg.io/app", nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"bob"}, users(got))
		})
	}
}

func TestABadEntryHidesNoOtherOfItsSecret(t *testing.T) {
	keyring, err := credentials.FromSecrets([]v1.Secret{
		jsonSecret("half", `{"auths":{"a.io":{"auth":"!"},"b.io":{"username":"bob"}}}`),
	})
	require.ErrorContains(t, err, `secret shop/half: key .dockerconfigjson: "a.io"`)
	got, err := keyring.Lookup(t.Context(), "b.io/app", nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"bob"}, users(got))
}

func FuzzFromSecrets(f *testing.F) {
	for _, s := range []string{
		`{"auths":{"reg.io":{"auth":"Ym9iOnB3"}}}`, `{"reg.io":{"username":"b","password":"p"}}`, `{`, `null`,
		`{"auths":null}`, `{"auths":{"":null}}`, `{"auths":{"[::1]:5000/x":{"identitytoken":"t"}},"credsStore":"x"}`,
	} {
		f.Add(s, "reg.io/app")
	}
	f.Fuzz(func(t *testing.T, data, image string) {
		secrets := []v1.Secret{jsonSecret("s", data), secret("t", v1.SecretTypeDockercfg, v1.DockerConfigKey, data)}
		keyring, _ := credentials.FromSecrets(secrets)
		got, err := keyring.Lookup(t.Context(), image, nil)
		again, errAgain := keyring.Lookup(t.Context(), image, nil)
		require.Equal(t, err == nil, errAgain == nil)
		require.Equal(t, got, again)
		require.Equal(t, users(got), users(again))
		for _, c := range got {
			require.NotEmpty(t, c.Source.Name)
		}
	})
}

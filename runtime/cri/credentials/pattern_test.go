package credentials_test

import (
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func TestPatternsMatchImages(t *testing.T) {
	for _, c := range []struct {
		name           string
		pattern, image string
		want           bool
	}{
		{"the same host", "reg.io", "reg.io/app", true},
		{"another host", "reg.io", "reg.com/app", false},
		{"a tag is not looked at", "reg.io", "reg.io/app:1.2", true},
		{"a digest is not looked at", "reg.io", "reg.io/app@sha256:" + strings.Repeat("a", 64), true},
		{"a host with the same prefix", "reg.io", "reg.io.evil.com/app", false},
		{"a host with the same suffix", "reg.io", "my.reg.io/app", false},

		{"* matches one label", "*.reg.io", "eu.reg.io/app", true},
		{"* is not for no label", "*.reg.io", "reg.io/app", false},
		{"* is not for two labels", "*.reg.io", "a.eu.reg.io/app", false},
		{"two * are for two labels", "*.*.reg.io", "a.eu.reg.io/app", true},
		{"* in the middle", "k8s.*.io", "k8s.gcr.io/app", true},
		{"* at the end", "k8s.*", "k8s.io/app", true},
		{"* for part of a label", "app*.k8s.io", "app1.k8s.io/app", true},
		{"* for part of a label does not match a dot", "app*.io", "app1.k8s.io/app", false},
		{"* may match an empty part of a label", "app*.k8s.io", "app.k8s.io/app", true},
		{"* alone matches hosts of one label", "*", "localhost/app", true},
		{"* alone does not match all hosts", "*", "reg.io/app", false},
		{"? matches one character", "reg?.io", "reg1.io/app", true},
		{"? does not match an empty string", "reg?.io", "reg.io/app", false},
		{"? never is a dot", "reg?io", "reg.io/app", false},
		{"a class of characters", "reg-[a-c].io", "reg-b.io/app", true},
		{"a character not in the class", "reg-[a-c].io", "reg-d.io/app", false},
		{"a class at the begin", "[a-z]eg.io", "reg.io/app", true},
		{"a negated class", "[^a-q]eg.io", "reg.io/app", true},

		{"the same port", "reg.io:5000", "reg.io:5000/app", true},
		{"another port", "reg.io:5000", "reg.io:5001/app", false},
		{"no port is not any port", "reg.io", "reg.io:5000/app", false},
		{"a port does not match no port", "reg.io:443", "reg.io/app", false},
		{"a glob and a port", "*.reg.io:5000", "eu.reg.io:5000/app", true},
		{"localhost", "localhost:5000", "localhost:5000/app", true},
		{"an address", "10.0.0.1:5000", "10.0.0.1:5000/app", true},
		{"an IPv6 address", "[fd00::1]:5000", "[fd00::1]:5000/app", true},
		{"another IPv6 address", "[fd00::1]:5000", "[fd00::2]:5000/app", false},
		{"an IPv6 address without port", "[::1]", "[::1]/app", true},

		{"a path is a prefix", "reg.io/team", "reg.io/team/app", true},
		{"a path is the image", "reg.io/team/app", "reg.io/team/app:1", true},
		{"a path is a string prefix, not a prefix of path elements", "reg.io/team", "reg.io/teamwork/app", true},
		{"a path with a slash is for whole names", "reg.io/team/", "reg.io/teamwork/app", false},
		{"another path", "reg.io/team", "reg.io/other/app", false},
		{"a longer path", "reg.io/team/app/x", "reg.io/team/app", false},
		{"globs are not for paths", "reg.io/*", "reg.io/team/app", false},
		{"a slash alone is no path", "reg.io/", "reg.io/app", true},

		{"https://", "https://reg.io", "reg.io/app", true},
		{"http://", "http://reg.io:5000", "reg.io:5000/app", true},
		{"/v1/", "https://reg.io/v1/", "reg.io/app", true},
		{"/v2/", "https://reg.io/v2/", "reg.io/app", true},
		{"/v2/ before a path", "reg.io/v2/team", "reg.io/team/app", true},
		{"/v2/ with a slash and a path stays a path", "reg.io/v2/team", "reg.io/other/app", false},
		{"/v2 without a slash is a path", "reg.io/v2", "reg.io/app", false},

		{"an image without a registry is at docker.io", "docker.io", "nginx", true},
		{"an image of a user at docker.io", "docker.io", "bob/app", true},
		{"what docker login writes", "https://index.docker.io/v1/", "nginx:1.27", true},
		{"index.docker.io is docker.io", "index.docker.io", "docker.io/library/nginx", true},
		{"docker.io is index.docker.io", "docker.io", "index.docker.io/bob/app", true},
		{"library is part of the path", "docker.io/library", "nginx", true},
		{"a path at docker.io", "index.docker.io/bob", "bob/app", true},
		{"another path at docker.io", "index.docker.io/bob", "alice/app", false},
		{"docker.io does not match images of other registries", "docker.io", "quay.io/bob/app", false},
		{"other hosts of docker.io do not match", "registry-1.docker.io", "nginx", false},
		{"a glob matches docker.io", "*.io", "nginx", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := credentials.Match(c.pattern, c.image)
			require.NoError(t, err)
			assert.Equal(t, c.want, got, "%s for %s", c.pattern, c.image)
		})
	}
}

func TestPatternsThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ pattern, wantErr string }{
		{"", `"" has no host`},
		{"https://", `"https://" has no host`},
		{"/team", `"/team" has no host`},
		{":5000", `":5000" has no host`},
		{"reg.io:*", `"reg.io:*" has a port that is not a number`},
		{"a:b:c", `"a:b:c" has a port that is not a number`},
		{"reg io", `"reg io" has a space or control character`},
		{"reg.io/a\x00", `"reg.io/a\x00" has a space or control character`},
		{"reg[.io", `"reg[" is not a glob in "reg[.io"`},
		{"[a.b].io", `"[a" is not a glob in "[a.b].io"`},
		{"https://bob:hunter2@reg.io", "with an @ is not a registry"},
	} {
		_, err := credentials.Match(c.pattern, "reg.io/app")
		require.Error(t, err, c.pattern)
		assert.Equal(t, "credentials: pattern "+c.wantErr, err.Error())
		assert.NotContains(t, err.Error(), "hunter2")
	}
	_, err := credentials.Match("reg.io", "Not An Image")
	assert.ErrorContains(t, err, `credentials: couldn't parse image name "Not An Image"`)
}

func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{
		{"reg.io", "reg.io/app"}, {"*.reg.io:5000/team", "a.reg.io:5000/team/app:1"},
		{"https://index.docker.io/v1/", "nginx"}, {"[a-z]?.io", "ab.io/x"}, {"[::1]:1", "[::1]:1/x"},
		{`\*.io`, "a.io/x"}, {"[", "a/b"}, {"reg.io/v2/", "reg.io/v2/x"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, image string) {
		got, err := credentials.Match(pattern, image)
		if err != nil {
			require.False(t, got)
			return
		}
		named, err := reference.ParseNormalizedNamed(image)
		require.NoError(t, err, "Match accepted an invalid image")
		host := reference.Domain(named)

		// The host of an image matches the image, with or without the parts of a pattern that
		// are ignored.
		for _, own := range []string{host, "https://" + host + "/v2/", named.Name()} {
			ok, err := credentials.Match(own, image)
			require.NoError(t, err)
			// A repository that begins with v1 or v2 is parsed as the API version.
			if rest := strings.TrimPrefix(own, host); rest == "" || !strings.HasPrefix(rest, "/v") {
				require.True(t, ok, "%s for %s", own, image)
			}
		}
		if !got {
			return
		}
		// A matching pattern has the same number of dots and the same port.
		key := strings.TrimPrefix(strings.TrimPrefix(pattern, "https://"), "http://")
		key, _, _ = strings.Cut(key, "/")
		if strings.HasPrefix(key, "[") || strings.HasPrefix(host, "[") {
			return
		}
		if key == "index.docker.io" {
			key = "docker.io"
		}
		keyHost, keyPort, _ := strings.Cut(key, ":")
		name, port, _ := strings.Cut(host, ":")
		require.Equal(t, strings.Count(name, "."), strings.Count(keyHost, "."), "%s for %s", pattern, image)
		require.Equal(t, port, keyPort, "%s for %s", pattern, image)
	})
}

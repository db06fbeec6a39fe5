package payload_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/atomic"
	"github.com/kubeparts/kubeparts/volume/payload"
)

func ptr[T any](v T) *T { return &v }

// show formats a payload: "path mode content", by path.
func show(p atomic.Payload) map[string]string {
	if p == nil {
		return nil
	}
	m := map[string]string{}
	for path, f := range p {
		m[path] = f.Mode.String() + " " + string(f.Data)
	}
	return m
}

func TestObjects(t *testing.T) {
	cm := &v1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"c": {0, 1}}}
	secret := &v1.Secret{Data: map[string][]byte{"a": []byte("1"), "b": []byte("2")}}
	items := []v1.KeyToPath{{Key: "a", Path: "d/e"}, {Key: "b", Path: "f", Mode: ptr[int32](0o400)}}
	missing := []v1.KeyToPath{{Key: "a", Path: "a"}, {Key: "nope", Path: "n"}}
	for _, c := range []struct {
		name string
		make func() (atomic.Payload, error)
		want map[string]string
		err  string
	}{
		{"vol-51 data and binaryData, default mode", func() (atomic.Payload, error) { return payload.ConfigMap(cm, nil, payload.Defaults{}, false) },
			map[string]string{"a": "-rw-r--r-- 1", "b": "-rw-r--r-- 2", "c": "-rw-r--r-- \x00\x01"}, ""},
		{"vol-51 items, modes", func() (atomic.Payload, error) {
			return payload.ConfigMap(cm, items, payload.Defaults{Mode: ptr[int32](0o640)}, false)
		},
			map[string]string{"d/e": "-rw-r----- 1", "f": "-r-------- 2"}, ""},
		{"vol-51 missing key", func() (atomic.Payload, error) { return payload.ConfigMap(cm, missing, payload.Defaults{}, false) },
			nil, "configmap references non-existent config key: nope"},
		{"vol-51 missing key, optional", func() (atomic.Payload, error) { return payload.ConfigMap(cm, missing, payload.Defaults{}, true) },
			map[string]string{"a": "-rw-r--r-- 1"}, ""},
		{"vol-43 missing object, optional", func() (atomic.Payload, error) { return payload.ConfigMap(nil, missing, payload.Defaults{}, true) },
			map[string]string{}, ""},
		{"vol-52 secret", func() (atomic.Payload, error) {
			return payload.Secret(secret, nil, payload.Defaults{Mode: ptr[int32](0o400)}, false)
		},
			map[string]string{"a": "-r-------- 1", "b": "-r-------- 2"}, ""},
		{"vol-52 missing key", func() (atomic.Payload, error) { return payload.Secret(secret, missing, payload.Defaults{}, false) },
			nil, "references non-existent secret key: nope"},
		{"vol-52 missing key, optional", func() (atomic.Payload, error) { return payload.Secret(secret, missing, payload.Defaults{}, true) },
			map[string]string{"a": "-rw-r--r-- 1"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.make()
			if c.err != "" {
				require.EqualError(t, err, c.err)
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, show(got))
		})
	}
}

func examplePod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "u1",
		Labels:      map[string]string{"b": "2", "a": "1"},
		Annotations: map[string]string{"note": "a \"quoted\"\nline"},
	}}
	pod.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m"), "hugepages-2Mi": resource.MustParse("4Mi")},
		Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")},
	}}}
	return pod
}

func TestDownwardAPI(t *testing.T) {
	allocatable := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourceEphemeralStorage: resource.MustParse("10Gi")}
	field := func(path string) v1.DownwardAPIVolumeFile {
		return v1.DownwardAPIVolumeFile{Path: "f", FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
	}
	res := func(container, name, divisor string) v1.DownwardAPIVolumeFile {
		ref := &v1.ResourceFieldSelector{ContainerName: container, Resource: name}
		if divisor != "" {
			ref.Divisor = resource.MustParse(divisor)
		}
		return v1.DownwardAPIVolumeFile{Path: "f", ResourceFieldRef: ref}
	}
	for _, c := range []struct {
		name      string
		item      v1.DownwardAPIVolumeFile
		want, err string
	}{
		{"vol-53 name", field("metadata.name"), "web", ""},
		{"vol-53 namespace", field("metadata.namespace"), "shop", ""},
		{"vol-53 uid", field("metadata.uid"), "u1", ""},
		{"vol-53 a label", field("metadata.labels['b']"), "2", ""},
		{"vol-53 an annotation", field("metadata.annotations['note']"), "a \"quoted\"\nline", ""},
		{"vol-53 labels, sorted", field("metadata.labels"), "a=\"1\"\nb=\"2\"", ""},
		{"vol-53 annotations, escaped", field("metadata.annotations"), `note="a \"quoted\"\nline"`, ""},
		{"vol-53 no such field", field("spec.nodeName"), "", "fieldRef: unsupported fieldPath: spec.nodeName"},
		{"vol-53 limits.cpu rounds up", res("c", "limits.cpu", ""), "2", ""},
		{"vol-53 limits.cpu in millis", res("c", "limits.cpu", "1m"), "1500", ""},
		{"vol-53 requests.memory in Mi", res("c", "requests.memory", "1Mi"), "64", ""},
		{"vol-53 no limit: allocatable", res("c", "limits.memory", "1Mi"), "1024", ""},
		{"vol-53 no limit: allocatable", res("c", "limits.ephemeral-storage", "1Gi"), "10", ""},
		{"vol-53 huge pages", res("c", "limits.hugepages-2Mi", "1Mi"), "4", ""},
		{"vol-53 no such container", res("x", "limits.cpu", ""), "", "resourceFieldRef: container x not found"},
		{"vol-53 no container", res("", "limits.cpu", ""), "", "resourceFieldRef: containerName is required in volumes"},
		{"vol-53 no such resource", res("c", "limits.pods", ""), "", "resourceFieldRef: unsupported resource: limits.pods"},
		{"neither", v1.DownwardAPIVolumeFile{Path: "f"}, "", `downwardAPI item "f" has neither fieldRef nor resourceFieldRef`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := payload.DownwardAPI(examplePod(), []v1.DownwardAPIVolumeFile{c.item}, payload.Defaults{}, allocatable)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"f": "-rw-r--r-- " + c.want}, show(got))
		})
	}
	_, err := payload.DownwardAPI(examplePod(), []v1.DownwardAPIVolumeFile{field("spec.x"), field("metadata.name"), field("spec.y")}, payload.Defaults{}, nil)
	require.EqualError(t, err, "[fieldRef: unsupported fieldPath: spec.x, fieldRef: unsupported fieldPath: spec.y]")
}

// gone is an object that does not exist.
var gone = &fs.PathError{Op: "get", Path: "it", Err: fs.ErrNotExist}

// sources implements payload.Sources.
type sources struct{}

func (sources) ConfigMap(name string) (*v1.ConfigMap, error) {
	if name == "gone" {
		return nil, gone
	}
	return &v1.ConfigMap{Data: map[string]string{"k": "cm " + name}}, nil
}

func (sources) Secret(name string) (*v1.Secret, error) {
	if name == "gone" {
		return nil, gone
	}
	return &v1.Secret{Data: map[string][]byte{"k": []byte("secret " + name)}}, nil
}

func (sources) Token(p *v1.ServiceAccountTokenProjection) (string, error) {
	if p.Audience == "unknown" {
		return "", errors.New("failed to fetch token: no")
	}
	return "token for " + p.Audience, nil
}

func (sources) TrustBundles(p *v1.ClusterTrustBundleProjection) ([]string, error) {
	if p.Name != nil && *p.Name == "gone" {
		return nil, gone
	}
	if p.SignerName != nil {
		return nil, nil
	}
	return []string{certificate("two"), certificate("one") + certificate("two")}, nil
}

func (sources) Certificate(index int, p *v1.PodCertificateProjection) (key, chain []byte, err error) {
	if p.SignerName == "" {
		return nil, nil, errors.New("credential bundle is not issued yet")
	}
	return fmt.Appendf(nil, "key %d of %s, ", index, p.SignerName), []byte("chain"), nil
}

func certificate(content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)}))
}

func cmSource(name string, optional bool, items ...v1.KeyToPath) v1.VolumeProjection {
	return v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: &optional}}
}

func secretSource(name string, optional bool, items ...v1.KeyToPath) v1.VolumeProjection {
	return v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: name}, Items: items, Optional: &optional}}
}

func bundle(p v1.ClusterTrustBundleProjection) v1.VolumeProjection {
	p.Path = "ca"
	return v1.VolumeProjection{ClusterTrustBundle: &p}
}

func TestProjections(t *testing.T) {
	token := v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}}
	for _, c := range []struct {
		name    string
		sources []v1.VolumeProjection
		owners  payload.Owners
		want    map[string]string
		err     string
	}{
		{"vol-54 in order, later overwrites", []v1.VolumeProjection{cmSource("a", false), secretSource("b", false)}, payload.Owners{},
			map[string]string{"k": "-r--r----- secret b"}, ""},
		{"vol-54 all or nothing, all errors", []v1.VolumeProjection{
			cmSource("gone", false), secretSource("b", false, v1.KeyToPath{Key: "x"}), secretSource("ok", false),
		}, payload.Owners{}, nil, "[get it: file does not exist, references non-existent secret key: x]"},
		{"vol-54 optional", []v1.VolumeProjection{cmSource("gone", true), secretSource("gone", true)}, payload.Owners{}, map[string]string{}, ""},
		{"vol-54 downward API", []v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{
			{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		}}}}, payload.Owners{}, map[string]string{"name": "-r--r----- web"}, ""},
		{"vol-55 token, the volume's mode", []v1.VolumeProjection{token}, payload.Owners{}, map[string]string{"token": "-r--r----- token for vault"}, ""},
		{"vol-55 token of a user", []v1.VolumeProjection{token}, payload.Owners{FSUser: ptr[int64](7)}, map[string]string{"token": "-rw------- token for vault"}, ""},
		{"vol-55 token of a group", []v1.VolumeProjection{token}, payload.Owners{FSGroup: ptr[int64](7)}, map[string]string{"token": "-rw------- token for vault"}, ""},
		{"vol-57 by name, once each", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{Name: ptr("b")})}, payload.Owners{},
			map[string]string{"ca": "-r--r----- " + certificate("one") + certificate("two")}, ""},
		{"vol-57 mode of a user", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{Name: ptr("b")})}, payload.Owners{FSUser: ptr[int64](7)},
			map[string]string{"ca": "-rw------- " + certificate("one") + certificate("two")}, ""},
		{"vol-57 missing", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{Name: ptr("gone")})}, payload.Owners{}, nil,
			"while getting ClusterTrustBundle: get it: file does not exist"},
		{"vol-57 missing, optional", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{Name: ptr("gone"), Optional: ptr(true)})}, payload.Owners{},
			map[string]string{"ca": "-r--r----- "}, ""},
		{"vol-57 signer without any", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{SignerName: ptr("s")})}, payload.Owners{}, nil,
			"combination of signerName and labelSelector matched zero ClusterTrustBundles"},
		{"vol-57 signer without any, optional", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{SignerName: ptr("s"), Optional: ptr(true)})}, payload.Owners{},
			map[string]string{"ca": "-r--r----- "}, ""},
		{"vol-57 neither", []v1.VolumeProjection{bundle(v1.ClusterTrustBundleProjection{})}, payload.Owners{}, nil,
			"ClusterTrustBundle projection requires either name or signerName to be set"},
		{"vol-58 all files", []v1.VolumeProjection{{PodCertificate: &v1.PodCertificateProjection{
			SignerName: "s", CredentialBundlePath: "bundle", KeyPath: "tls.key", CertificateChainPath: "tls.crt",
		}}}, payload.Owners{}, map[string]string{"bundle": "-r--r----- key 0 of s, chain", "tls.key": "-r--r----- key 0 of s, ", "tls.crt": "-r--r----- chain"}, ""},
		{"vol-58 of a user, the second source", []v1.VolumeProjection{cmSource("a", false), {PodCertificate: &v1.PodCertificateProjection{
			SignerName: "s", KeyPath: "a",
		}}}, payload.Owners{FSUser: ptr[int64](7)}, map[string]string{"a": "-rw------- key 1 of s, ", "k": "-r--r----- cm a"}, ""},
		{"vol-58 error", []v1.VolumeProjection{{PodCertificate: &v1.PodCertificateProjection{KeyPath: "a"}}}, payload.Owners{}, nil, "credential bundle is not issued yet"},
		{"no source", []v1.VolumeProjection{{}}, payload.Owners{}, nil, "projected volume has an unsupported source"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := &v1.ProjectedVolumeSource{Sources: c.sources, DefaultMode: ptr[int32](0o440)}
			got, err := payload.Projected(examplePod(), source, nil, sources{}, c.owners)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, show(got))
			if f, ok := got["token"]; ok {
				assert.Equal(t, c.owners.FSUser, f.UID)
			}
		})
	}
}

// The user of the source has precedence over the user of the volume, and both over the user of all containers.
func TestTheUserOfACertificate(t *testing.T) {
	for want, users := range map[int64][3]*int64{
		1: {ptr[int64](1), ptr[int64](2), ptr[int64](3)}, 2: {nil, ptr[int64](2), ptr[int64](3)}, 3: {nil, nil, ptr[int64](3)},
	} {
		source := &v1.ProjectedVolumeSource{DefaultUser: users[1], Sources: []v1.VolumeProjection{
			{PodCertificate: &v1.PodCertificateProjection{SignerName: "s", KeyPath: "key", User: users[0]}},
		}}
		files, err := payload.Projected(examplePod(), source, nil, sources{}, payload.Owners{FSUser: users[2]})
		require.NoError(t, err)
		assert.Equal(t, want, *files["key"].UID)
	}
}

func TestTheErrorOfATokenIsThatOfItsSource(t *testing.T) {
	source := &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Audience: "unknown"}}}}
	_, err := payload.Projected(examplePod(), source, nil, sources{}, payload.Owners{})
	require.EqualError(t, err, "failed to fetch token: no")
}

func TestTrustAnchors(t *testing.T) {
	out, err := payload.TrustAnchors([]string{"comment\n" + certificate("b"), certificate("a") + "\n# end\n"})
	require.NoError(t, err)
	assert.Equal(t, certificate("a")+certificate("b"), string(out))
	_, err = payload.TrustAnchors([]string{strings.ReplaceAll(certificate("a"), "CERTIFICATE", "PRIVATE KEY")})
	require.ErrorContains(t, err, "PRIVATE KEY")
	_, err = payload.TrustAnchors([]string{"-----BEGIN CERTIFICATE-----\nrubbish"})
	require.Error(t, err)
}

// For any paths in a ConfigMap's items: a payload that can be created can be checked,
// and one that passes has no path outside the volume.
func FuzzItems(f *testing.F) {
	f.Add("a", "b/c", "../x")
	f.Fuzz(func(t *testing.T, key, one, two string) {
		cm := &v1.ConfigMap{Data: map[string]string{key: "v"}}
		files, err := payload.ConfigMap(cm, []v1.KeyToPath{{Key: key, Path: one}, {Key: key, Path: two}}, payload.Defaults{}, false)
		require.NoError(t, err)
		if files.Check() == nil {
			for path := range files {
				require.True(t, fs.ValidPath(strings.TrimPrefix(cleaned(path), "/")), path)
			}
		}
	})
}

func cleaned(path string) string {
	var parts []string
	for _, p := range strings.Split(path, "/") {
		if p != "" && p != "." {
			parts = append(parts, p)
		}
	}
	return strings.ToValidUTF8(strings.Join(parts, "/"), "?")
}

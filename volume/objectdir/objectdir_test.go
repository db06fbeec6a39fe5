package objectdir_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/objectdir"
	"github.com/kubeparts/kubeparts/volume/payload"
)

var (
	_ payload.Objects = (*objectdir.Dir)(nil)
)

func put(t *testing.T, content string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	temp := filepath.Join(filepath.Dir(name), "..new") // so that no reader gets a half
	require.NoError(t, os.WriteFile(temp, []byte(content), 0o600))
	require.NoError(t, os.Rename(temp, name))
}

func open(t *testing.T, cfg objectdir.Config) *objectdir.Dir {
	t.Helper()
	d, err := objectdir.New(cfg)
	require.NoError(t, err)
	return d
}

const both = `# two objects
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {a: "1"}
binaryData: {b: AAE=}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
data: {user: YWRtaW4=, pass: b2xk}
stringData: {pass: new}
`

func TestObjectsAreReadInBothForms(t *testing.T) {
	dir := t.TempDir()
	put(t, both, dir, "both.yaml")
	put(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"},"data":{"k":"v"}}`, dir, "j.json")
	put(t, "file", dir, "configmaps", "default", "form", "key")
	put(t, "\xff\x00", dir, "configmaps", "default", "form", "binary")
	put(t, "s3cr3t", dir, "secrets", "shop", "form", "token")
	put(t, "not an object", dir, "README")
	put(t, "not an object", dir, ".hidden.yaml")
	d := open(t, objectdir.Config{Dir: dir})
	require.NoError(t, d.Read())
	assert.Empty(t, d.Problems())
	assert.Equal(t, []string{"ConfigMap default/form", "ConfigMap default/json", "ConfigMap shop/web", "Secret default/web", "Secret shop/form"}, d.Names())

	cm, err := d.ConfigMap(t.Context(), "shop", "web")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "1"}, cm.Data)
	assert.Equal(t, map[string][]byte{"b": {0, 1}}, cm.BinaryData)
	s, err := d.Secret(t.Context(), "default", "web")
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"user": []byte("admin"), "pass": []byte("new")}, s.Data)
	form, err := d.ConfigMap(t.Context(), "default", "form")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"key": "file"}, form.Data)
	assert.Equal(t, map[string][]byte{"binary": []byte("\xff\x00")}, form.BinaryData)

	_, err = d.ConfigMap(t.Context(), "default", "web")
	require.EqualError(t, err, `configmap "web" not found`)
	require.ErrorIs(t, err, fs.ErrNotExist, "oc-8")
	_, err = d.Token(t.Context(), "shop", "builder", nil)
	require.ErrorIs(t, err, objectdir.ErrNoTokens)
	require.ErrorContains(t, err, "shop/builder")
}

func TestInvalidFilesAreReportedAndAffectNoOtherObject(t *testing.T) {
	good := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {k: v}\n"
	object := func(rest string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: bad}\n" + rest }
	for _, c := range []struct{ name, content, want string }{
		{"no object", "# nothing\n", "objectdir: no object in file"},
		{"another kind", "apiVersion: v1\nkind: Pod\n", `objectdir: apiVersion "v1", kind "Pod": only v1 ConfigMaps and Secrets are supported`},
		{"no name", "apiVersion: v1\nkind: Secret\n", "objectdir: metadata.name: Required value"},
		{"bad name", "apiVersion: v1\nkind: Secret\nmetadata: {name: ../etc}\n", `objectdir: metadata.name: Invalid value: "../etc"`},
		{"bad namespace", "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: ..}\n", `objectdir: metadata.namespace: Invalid value: ".."`},
		{"unknown field", object("dta: {}\n"), `objectdir: unknown field "dta"`},
		{"key with a slash", object("stringData: {../x: v}\n"), `objectdir: data[../x]: Invalid value: "../x"`},
		{"key of 300 characters", object("stringData: {" + strings.Repeat("k", 300) + ": v}\n"), "must be no more than 253 characters"},
		{"1.2 MiB", object("stringData: {k: " + strings.Repeat("x", 12<<20/10) + "}\n"), "objectdir: data: Too long: may not be more than 1048576 bytes"},
		{"2 MiB", object("stringData: {k: " + strings.Repeat("x", 2<<20) + "}\n"), "objectdir: has 2097220 bytes; at most 1572864 are allowed"},
		{"many values", strings.Repeat(object("data: {}\nx: ["+strings.Repeat("a,", 99_998)+"]\n---\n"), 2), "objectdir: document 1: has more than 100000 values"},
		{"many documents", strings.Repeat(good+"---\n", 20_000), "the documents together have more than 100000 values"},
		{"aliases", object("x: &x " + strings.Repeat("v", 100_000) + "\ny: [" + strings.Repeat("*x,", 99) + "]\n"), "once its aliases are expanded"},
		{"not base64", object("data: {k: '?hunter2?'}\n"), "objectdir: "},
		{"not YAML", object("data: {k: hunter2\n"), "objectdir: "},
		{"in the second document", good + "---\nkind: Secret\n", "objectdir: document 2: "},
		{"twice in data", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {k: v}\nbinaryData: {k: AAE=}\n", "objectdir: data[k]: is in binaryData as well"},
		{"binary", "\xff\xfe", "objectdir: is not UTF-8 text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, good, dir, "good.yaml")
			put(t, c.content, dir, "bad.yaml")
			d := open(t, objectdir.Config{Dir: dir})
			require.NoError(t, d.Read())
			assert.Equal(t, []string{"ConfigMap default/good"}, d.Names())
			require.Len(t, d.Problems(), 1)
			assert.Equal(t, filepath.Join(dir, "bad.yaml"), d.Problems()[0].Path)
			assert.ErrorContains(t, d.Problems()[0].Err, c.want)
			assert.NotContains(t, d.Problems()[0].Err.Error(), "hunter2", "no secret is in an error")
			assert.Less(t, len(d.Problems()[0].Err.Error()), 1000)
		})
	}
}

func TestOddPathsAreNamed(t *testing.T) {
	dir := t.TempDir()
	put(t, "x", dir, "other", "file")
	put(t, "x", dir, "configmaps", "stray")
	put(t, "x", dir, "secrets", "default", "Bad_Name", "k")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.yaml"), 0o755))
	put(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: twin}\n", dir, "a.yaml")
	put(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: twin}\n", dir, "b.yaml")
	d := open(t, objectdir.Config{Dir: dir})
	require.NoError(t, d.Read())
	var paths []string
	for _, p := range d.Problems() {
		rel, err := filepath.Rel(dir, p.Path)
		require.NoError(t, err)
		paths = append(paths, filepath.ToSlash(rel))
	}
	assert.Equal(t, []string{"b.yaml", "configmaps/stray", "dir.yaml", "other", "secrets/default/Bad_Name"}, paths)
	assert.Equal(t, []string{"Secret default/twin"}, d.Names())
}

func TestABrokenFileLeavesItsObjectsAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	var reported []string
	d := open(t, objectdir.Config{Dir: dir, Changed: func(kind, namespace, name string) { reported = append(reported, kind+" "+namespace+"/"+name) }})
	put(t, both, dir, "a.yaml")
	require.NoError(t, d.Read())
	assert.Equal(t, []string{"ConfigMap shop/web", "Secret default/web"}, reported)

	reported = nil
	put(t, both[:40], dir, "a.yaml")
	require.NoError(t, d.Read())
	require.Len(t, d.Problems(), 1)
	assert.True(t, d.Problems()[0].Kept)
	assert.Len(t, d.Names(), 2)
	assert.Empty(t, reported)

	put(t, strings.Replace(both, `"1"`, `"2"`, 1), dir, "a.yaml")
	require.NoError(t, d.Read())
	assert.Empty(t, d.Problems())
	assert.Equal(t, []string{"ConfigMap shop/web"}, reported, "only the changed object")

	reported = nil
	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	require.NoError(t, d.Read())
	assert.Equal(t, []string{"ConfigMap shop/web", "Secret default/web"}, reported)
	assert.Empty(t, d.Names())
}

func TestAMissingDirectoryIsEmpty(t *testing.T) {
	d := open(t, objectdir.Config{Dir: filepath.Join(t.TempDir(), "none")})
	require.NoError(t, d.Read())
	assert.Empty(t, d.Names())
	_, err := d.Secret(t.Context(), "a", "b")
	require.ErrorIs(t, err, fs.ErrNotExist)

	file := filepath.Join(t.TempDir(), "file")
	put(t, "", file)
	d = open(t, objectdir.Config{Dir: file})
	require.Error(t, d.Read())
	require.Len(t, d.Problems(), 1)
}

func TestObjectsAreNotReportedMissingBeforeTheFirstRead(t *testing.T) {
	d := open(t, objectdir.Config{Dir: t.TempDir()})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := d.Secret(ctx, "a", "b")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

func TestChangesAreReportedImmediately(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "objects") // made later
	reported := make(chan string, 100)
	d := open(t, objectdir.Config{Dir: dir, Period: time.Hour, Settle: 20 * time.Millisecond, Changed: func(kind, namespace, name string) {
		reported <- kind + " " + namespace + "/" + name
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, d.Run(ctx)) })
	defer wg.Wait()
	defer cancel()
	hear := func(want string) {
		t.Helper()
		select {
		case got := <-reported:
			require.Equal(t, want, got)
		case <-time.After(90 * time.Second):
			t.Fatalf("no change was reported for %s; there are %v", want, d.Names())
		}
	}
	_, err := d.Secret(ctx, "a", "b")
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.Mkdir(dir, 0o755))
	put(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {k: v}\n", dir, "web.yaml")
	hear("Secret default/web")
	put(t, "value", dir, "configmaps", "shop", "form", "key")
	hear("ConfigMap shop/form")
	put(t, "other", dir, "configmaps", "shop", "form", "key")
	hear("ConfigMap shop/form")
	require.NoError(t, os.Remove(filepath.Join(dir, "web.yaml")))
	hear("Secret default/web")
}

func TestConfigurationsThatCannotWork(t *testing.T) {
	for _, cfg := range []objectdir.Config{{}, {Dir: "x", Period: -1}, {Dir: "x", Settle: -1}} {
		_, err := objectdir.New(cfg)
		require.ErrorContains(t, err, "objectdir: Config.")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(both))
	f.Add([]byte("{}"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		configMaps, secrets, err := objectdir.Decode(data)
		if err == nil && len(configMaps)+len(secrets) == 0 {
			t.Fatal("no error, and no object")
		}
		for _, s := range secrets {
			require.NotEmpty(t, s.Name)
			require.NotEmpty(t, s.Namespace)
		}
	})
}

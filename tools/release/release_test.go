package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersions(t *testing.T) {
	for _, version := range []string{"v0.1.0", "v1.2.3", "v0.2.0-rc.1"} {
		assert.NoError(t, checkVersion(version), version)
	}
	for _, version := range []string{"", "0.1.0", "v1", "v2.0.0", "v0.1.0+dirty", "v0.1", "latest"} {
		assert.Error(t, checkVersion(version), version)
	}
}

const changelog = `# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- A [link](docs/a.md).

## [0.1.0] - not yet tagged

- The first.
`

func TestReleaseNotes(t *testing.T) {
	notes, err := releaseNotes(changelog, "v0.2.0", true)
	require.NoError(t, err)
	assert.Equal(t, "### Added\n\n- A [link](docs/a.md).\n", notes)
	notes, err = releaseNotes(changelog, "v0.1.0", false)
	require.NoError(t, err)
	assert.Equal(t, "- The first.\n", notes)

	for version, want := range map[string]string{
		"v0.1.0": `section [0.1.0] has no date but "not yet tagged"`,
		"v0.3.0": "no section [0.3.0]",
	} {
		_, err := releaseNotes(changelog, version, true)
		assert.ErrorContains(t, err, want)
	}
	_, err = releaseNotes(strings.Replace(changelog, "[Unreleased]\n", "[Unreleased]\n\n- Later.\n", 1), "v0.2.0", true)
	assert.ErrorContains(t, err, "[Unreleased] is not empty")
}

func TestRequiredVersions(t *testing.T) {
	const gomod = "module " + root + "/kube\n\nrequire " + root + " v0.1.0\n\nrequire (\n\t" + root + "/kube v0.1.0\n\tk8s.io/api v0.37.2\n)\n"
	assert.NoError(t, checkRequired("kube/go.mod", gomod, "v0.1.0"))
	assert.ErrorContains(t, checkRequired("kube/go.mod", gomod, "v0.2.0"), "kube/go.mod requires "+root+" v0.1.0")
}

// Each condition that a commit does not satisfy is a problem of its own.
func TestChecksOfACommit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEPARTS_CACHE", t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, module := range modules {
		path := filepath.Join(dir, module, "go.mod")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("module m\nrequire "+root+" v0.2.0\n"), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t", "commit", "-q", "-m", "first"}} {
		require.NoError(t, command(t.Context(), dir, nil, "git", args...))
	}
	c, err := readCommit(t.Context(), dir)
	require.NoError(t, err)
	problems := check(t.Context(), c, "v0.2.0", changelog)
	require.Len(t, problems, 1, "%q", problems)
	assert.Contains(t, problems[0], "run it on the clean tree")

	require.NoError(t, os.WriteFile(filepath.Join(cacheDir(), "full"), []byte(c.hash+"\n"), 0o644))
	assert.Empty(t, check(t.Context(), c, "v0.2.0", changelog))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o644))
	require.NoError(t, command(t.Context(), dir, nil, "git", "tag", "kube/v0.1.0"))
	text := strings.Join(check(t.Context(), c, "v0.1.0", changelog), "\n")
	for _, want := range []string{"?? new", "tag kube/v0.1.0 exists", "[0.1.0] has no date", "examples/go.mod requires " + root + " v0.2.0"} {
		assert.Contains(t, text, want)
	}
}

func TestTags(t *testing.T) {
	assert.Equal(t, []string{"v0.1.0", "kube/v0.1.0", "kube/controllers/v0.1.0", "kube/provider/virtualkubelet/v0.1.0", "examples/v0.1.0"}, tags("v0.1.0"))
	assert.Contains(t, tagCommands("v0.1.0", "0123456789abcdef"), "git push --atomic origin v0.1.0 kube/v0.1.0 ")
}

func TestArguments(t *testing.T) {
	o, err := parseArgs([]string{"--programs", "fakecri,kubelet", "v0.1.0", "--platforms=linux/arm64", "--out", "x"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "v0.1.0", o.version)
	require.Len(t, o.programs, 2)
	assert.Equal(t, "kubelet", o.programs[0].name, "the order of the table")
	assert.Equal(t, []platform{{"linux", "arm64"}}, o.builds(o.programs[0]))
	for _, args := range [][]string{{}, {"v0.1.0", "v0.2.0"}, {"--programs=none", "v0.1.0"}, {"--platforms=plan9/386", "v0.1.0"}, {"--tag", "--skip-checks", "v0.1.0"}} {
		_, err := parseArgs(append(args, "--out", "x"), io.Discard)
		assert.Error(t, err, "%v", args)
	}
}

func TestLicenses(t *testing.T) {
	for want, text := range map[string]string{
		"Apache-2.0":                  "Apache License\n   Version 2.0, January 2004",
		"MIT":                         "Permission is hereby granted, free of charge,\nto any person obtaining a copy of this",
		"BSD-2-Clause":                "Redistribution and use in source and binary forms",
		"BSD-3-Clause":                "Redistribution and use in source and binary\nforms ... Neither the name of",
		"Apache-2.0 AND BSD-3-Clause": "Redistribution and use in source and binary forms. Neither the name of. Apache License Version 2.0",
		"":                            "All rights reserved.",
	} {
		assert.Equal(t, want, identify(text))
	}
	dir := t.TempDir()
	_, err := licenseOf(dir)
	assert.Error(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("Apache License Version 2.0"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "NOTICE"), []byte("Copyright"), 0o644))
	l, err := licenseOf(dir)
	require.NoError(t, err)
	assert.Equal(t, license{"Apache-2.0", "Apache License Version 2.0\n\nCopyright\n\n"}, l)
}

var at = time.Unix(1_700_000_000, 0).UTC()

func TestTheBillOfMaterials(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: root + "/examples/kubelet", Main: debug.Module{Path: root + "/examples", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.37.2", Sum: "h1:x="}},
			{Path: "a.example/b", Version: "v1.0.0+incompatible"},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}},
	}
	s := subject{name: "kubelet", file: "kubelet_v0.1.0_linux_arm64", version: "v0.1.0", content: []byte("program"), created: at,
		licenses: map[string]license{"k8s.io/api@v0.37.2": {id: "Apache-2.0"}}}
	text, err := bill(s, info)
	require.NoError(t, err)
	again, err := bill(s, info)
	require.NoError(t, err)
	assert.Equal(t, text, again)
	var d spdx
	require.NoError(t, json.Unmarshal(text, &d))
	assert.Equal(t, "SPDX-2.3", d.Version)
	assert.Equal(t, "2023-11-14T22:13:20Z", d.CreationInfo.Created)
	var names, refs []string
	ids := map[string]bool{}
	for _, p := range d.Packages {
		names = append(names, p.Name+" "+p.Version+" "+p.LicenseDeclared)
		refs = append(refs, p.References[0].Locator)
		assert.False(t, ids[p.ID], "two packages %s", p.ID)
		ids[p.ID] = true
	}
	assert.Equal(t, []string{
		"kubelet v0.1.0 Apache-2.0", "std 1.26.8 BSD-3-Clause", root + "/examples v0.1.0 Apache-2.0",
		"a.example/b v1.0.0+incompatible NOASSERTION", "k8s.io/api v0.37.2 Apache-2.0",
	}, names)
	assert.Equal(t, "pkg:golang/a.example/b@v1.0.0%2Bincompatible", refs[3])
	assert.Equal(t, "GOOS=linux GOARCH=arm64 CGO_ENABLED=", d.Packages[0].Comment)
	for _, r := range d.Relationships {
		assert.True(t, ids[r.Related], "relationship with a package that is absent: %v", r)
	}
	assert.Len(t, d.Relationships, len(d.Packages))
}

func TestProvenance(t *testing.T) {
	text, err := provenance([]checksum{{"a", "00"}, {"b", "11"}}, "v0.1.0", "abc", "go1.26.8")
	require.NoError(t, err)
	var s statement
	require.NoError(t, json.Unmarshal(text, &s))
	assert.Equal(t, "https://slsa.dev/provenance/v1", s.PredicateType)
	assert.Equal(t, digested{Name: "b", Digest: map[string]string{"sha256": "11"}}, s.Subject[1])
	assert.Equal(t, "abc", s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"])
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600))
	sums, err := checksums(dir)
	require.NoError(t, err)
	assert.Equal(t, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n"+
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n", sumFile(sums))
}

var content = []file{{"program", 0o755, []byte("x")}, {"LICENSE", 0o644, []byte("license")}}

func TestArchivesAreReproducible(t *testing.T) {
	for _, on := range []platform{{"linux", "amd64"}, {"windows", "amd64"}} {
		a, b := t.TempDir(), t.TempDir()
		require.NoError(t, writeArchive(a, "p", on, content, at))
		require.NoError(t, writeArchive(b, "p", on, content, at))
		first, err := checksums(a)
		require.NoError(t, err)
		second, err := checksums(b)
		require.NoError(t, err)
		assert.Equal(t, first, second)
	}
}

func TestTheImage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	b := imageBuild{program: program{name: "program", does: "nothing", user: nonRoot}, name: "registry.example/program:v0.1.0", version: "v0.1.0", at: at}
	require.NoError(t, b.add(platform{"linux", "amd64"}, content))
	require.NoError(t, b.add(platform{"linux", "arm64"}, content))
	require.NoError(t, b.write(t.TempDir(), out))
	dir := t.TempDir()
	require.NoError(t, command(t.Context(), dir, nil, "tar", "-xf", out))
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	outer, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, outer.Manifests, 1)
	assert.Equal(t, "registry.example/program:v0.1.0", outer.Manifests[0].Annotations["io.containerd.image.name"])
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	require.NoError(t, err)
	manifest, err := inner.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2)
	for i, arch := range []string{"amd64", "arm64"} {
		d := manifest.Manifests[i]
		assert.Equal(t, &v1.Platform{OS: "linux", Architecture: arch}, d.Platform)
		image, err := inner.Image(d.Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, arch, config.Architecture)
		assert.Equal(t, nonRoot, config.Config.User)
		assert.Equal(t, []string{"/program"}, config.Config.Entrypoint)
		layers, err := image.Layers()
		require.NoError(t, err)
		require.Len(t, layers, 1)
		r, err := layers[0].Uncompressed()
		require.NoError(t, err)
		modes := map[string]int64{}
		for files := tar.NewReader(r); ; {
			h, err := files.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			modes[h.Name] = h.Mode
		}
		assert.Equal(t, map[string]int64{"etc/": 0o755, "etc/passwd": 0o644, "tmp/": 0o1777, "licenses/": 0o755, "licenses/LICENSE": 0o644, "program": 0o755}, modes)
	}
}

func TestTheVersionOfKubernetesIsReadFromThisRepository(t *testing.T) {
	version, err := kubernetesVersion(filepath.Join("..", ".."))
	require.NoError(t, err)
	assert.Regexp(t, `^1\.\d+\.\d+$`, version)

	_, err = kubernetesVersion(t.TempDir())
	assert.ErrorContains(t, err, filepath.Join("runtime", "kubernetes.go"))
}

func TestPackages(t *testing.T) {
	b := packageBuild{version: "v0.2.0-rc.1", kubernetes: "1.37.2", at: at, files: map[string]file{}}
	for _, name := range []string{"kubelet", "kubelet.service", "10-kubeadm.conf", "kubelet.yaml", "LICENSE"} {
		b.files[name] = file{name, 0o644, []byte(name)}
	}
	_, err := b.write("deb", "amd64", t.TempDir(), t.TempDir())
	assert.ErrorContains(t, err, "no file THIRD_PARTY_LICENSES")
	b.files["THIRD_PARTY_LICENSES"] = file{"THIRD_PARTY_LICENSES", 0o644, nil}
	b.files["kubelet"] = file{"kubelet", 0o755, []byte("program")}
	for format, want := range map[string]string{"deb": "kubeparts-kubelet_0.2.0~rc.1-1_arm64.deb", "rpm": "kubeparts-kubelet-0.2.0~rc.1-1.aarch64.rpm"} {
		var packages [2][]byte
		for i := range packages {
			out := t.TempDir()
			name, err := b.write(format, "arm64", t.TempDir(), out)
			require.NoError(t, err)
			assert.Equal(t, want, name)
			packages[i], err = os.ReadFile(filepath.Join(out, name))
			require.NoError(t, err)
		}
		assert.True(t, bytes.Equal(packages[0], packages[1]), "%s: two builds differ", format)
	}
}

// The shared module cache lends all modules but those of kubeparts.
func TestOverlay(t *testing.T) {
	shared, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"github.com/kubeparts/kubeparts@v0.1.0", "github.com/spf13/pflag@v1", "k8s.io/api@v1", "cache/download/github.com/kubeparts/kubeparts", "cache/download/k8s.io"} {
		require.NoError(t, os.MkdirAll(filepath.Join(shared, name), 0o755))
	}
	require.NoError(t, overlay(shared, dir, "", "cache", "cache/download", "cache/download/github.com", "github.com"))
	for name, want := range map[string]bool{
		"k8s.io/api@v1": true, "github.com/spf13/pflag@v1": true, "cache/download/k8s.io": true,
		"github.com/kubeparts": false, "cache/download/github.com/kubeparts": false,
	} {
		_, err := os.Stat(filepath.Join(dir, name))
		assert.Equal(t, want, err == nil, name)
		if !want {
			assert.ErrorIs(t, err, fs.ErrNotExist)
		}
	}
}

package lab

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteArchiveIsWhatDockerLoadReads(t *testing.T) {
	img := Image{
		Ref:        "kubeparts.test/web:1",
		Entrypoint: []string{"/web"},
		Cmd:        []string{"--all"},
		Env:        []string{"A=b"},
		User:       "1:1",
		Files: []File{
			{Path: "bin/", Mode: 0o755},
			{Path: "bin/web", Mode: 0o755, Data: []byte("program")},
			{Path: "web", Mode: 0o777, Link: "bin/web"},
		},
	}
	var first, second bytes.Buffer
	require.NoError(t, img.WriteArchive(&first))
	require.NoError(t, img.WriteArchive(&second))
	require.Equal(t, first.Bytes(), second.Bytes())

	files := untar(t, first.Bytes())
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"].data, &manifest))
	require.Len(t, manifest, 1)
	require.Equal(t, []string{"kubeparts.test/web:1"}, manifest[0].RepoTags)
	require.Equal(t, []string{"layer.tar"}, manifest[0].Layers)

	var config struct {
		OS     string
		Config struct {
			Entrypoint, Cmd, Env []string
			User                 string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(files[manifest[0].Config].data, &config))
	require.Equal(t, "linux", config.OS)
	require.Equal(t, img.Entrypoint, config.Config.Entrypoint)
	require.Equal(t, img.Cmd, config.Config.Cmd)
	require.Equal(t, img.Env, config.Config.Env)
	require.Equal(t, "1:1", config.Config.User)
	layer := files["layer.tar"].data
	require.Equal(t, []string{"sha256:" + digest(layer)}, config.RootFS.DiffIDs)

	inside := untar(t, layer)
	require.Equal(t, byte(tar.TypeDir), inside["bin/"].header.Typeflag)
	require.Equal(t, "program", string(inside["bin/web"].data))
	require.Equal(t, int64(0o755), inside["bin/web"].header.Mode)
	require.Equal(t, "bin/web", inside["web"].header.Linkname)
}

func TestWriteArchiveNamesTheImageAndFileItCannotWrite(t *testing.T) {
	err := Image{Ref: "kubeparts.test/bad:1", Files: []File{{Path: "nul\x00byte"}}}.WriteArchive(io.Discard)
	require.ErrorContains(t, err, "kubeparts.test/bad:1")
	require.ErrorContains(t, err, `"nul\x00byte"`)
}

type entry struct {
	header *tar.Header
	data   []byte
}

func untar(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	entries := map[string]entry{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return entries
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		entries[h.Name] = entry{h, data}
	}
}

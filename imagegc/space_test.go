package imagegc_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestUsageOfDirectories(t *testing.T) {
	file := func(n int) *fstest.MapFile { return &fstest.MapFile{Data: make([]byte, n)} }
	disk := fstest.MapFS{
		"log/pods/a/0.log":                              file(100),
		"log/pods/b/c/1.log":                            file(50),
		"pods/u1/volumes/kubernetes.io~empty-dir/tmp/x": file(1000),
		"pods/u2/volumes/kubernetes.io~empty-dir/y/z/1": file(200),
		"pods/u2/volumes/kubernetes.io~secret/token/t":  file(7),
	}
	holders, err := imagegc.DirUsage(t.Context(), disk, map[string][]string{
		"logs of pods":     {"log/pods", "log/pods/a"},
		"emptyDir volumes": {"pods/*/volumes/kubernetes.io~empty-dir"},
		"nothing":          {"none/*"},
	})
	require.NoError(t, err)
	assert.Equal(t, []imagegc.Consumer{{"emptyDir volumes", 1200}, {"logs of pods", 150}, {"nothing", 0}}, holders)

	_, err = imagegc.DirUsage(t.Context(), disk, map[string][]string{"bad": {"["}})
	assert.ErrorContains(t, err, `class "bad": pattern "["`)

	// The error for a disk filled by other files reports that.
	w := newWorld(2000)
	w.others = 1800
	cfg := w.config()
	cfg.Consumers = func(ctx context.Context) ([]imagegc.Consumer, error) {
		return holders, errors.New("one was unreadable")
	}
	_, err = newManager(t, cfg).Collect(t.Context())
	assert.ErrorContains(t, err, "Space is used by emptyDir volumes: 1.2 KiB, other: 450 B, logs of pods: 150 B.")
}

func TestSpaceOfAFileSystem(t *testing.T) {
	space, err := imagegc.StatFS(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("not on this operating system")
	}
	require.NoError(t, err)
	assert.NotZero(t, space.Capacity)
	assert.LessOrEqual(t, space.Available, space.Capacity)
	_, err = imagegc.StatFS("/no/such/path")
	assert.ErrorContains(t, err, "/no/such/path")

	fs := imageFS{runtime.FSUsage{Mountpoint: t.TempDir()}}
	space, err = imagegc.SpaceOf(fs)(t.Context())
	require.NoError(t, err)
	assert.NotZero(t, space.Capacity)
	_, err = imagegc.SpaceOf(imageFS{})(t.Context())
	assert.EqualError(t, err, "imagegc: runtime reports no image file system")
}

type imageFS []runtime.FSUsage

func (f imageFS) ImageFS(context.Context) (images, containers []runtime.FSUsage, err error) {
	return f, nil, nil
}

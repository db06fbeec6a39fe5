package images

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/lab"
)

func TestFilesAreAddedWithTheirDirectories(t *testing.T) {
	img := lab.Image{Files: []lab.File{{Path: "usr/", Mode: 0o755}, {Path: "sh"}}}
	add(&img, lab.File{Path: "usr/lib/x/y"}, lab.File{Path: "usr/lib/z"}, lab.File{Path: "sh"}, lab.File{Path: "run/"})
	var paths []string
	for _, f := range img.Files {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{"usr/", "sh", "usr/lib/", "usr/lib/x/", "usr/lib/x/y", "usr/lib/z", "run/"}, paths)
}

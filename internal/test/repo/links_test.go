package repo_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// link is a link of Markdown to a file of this repository.
var link = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)

func TestTheLinksOfTheDocumentsExist(t *testing.T) {
	needRepository(t)
	top, err := fs.Glob(files, "*.md")
	require.NoError(t, err)
	docs, err := fs.Glob(files, "docs/*.md")
	require.NoError(t, err)
	links := 0
	for _, file := range append(top, docs...) {
		text := read(t, file)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			to := path.Join(path.Dir(file), m[1])
			_, err := fs.Stat(files, to)
			assert.NoError(t, err, "%s links to %s", file, m[1])
			assert.False(t, strings.HasPrefix(to, ".."), "%s links out of the repository: %s", file, m[1])
		}
	}
	assert.Greater(t, links, 50)
}

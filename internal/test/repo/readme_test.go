package repo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// README.md contains the program of examples/tiny.
func TestTheReadmeContainsTheSmallestAgent(t *testing.T) {
	needRepository(t)
	unix := func(b []byte) string { return strings.ReplaceAll(string(b), "\r\n", "\n") }
	assert.Contains(t, unix(read(t, "README.md")), "```go\n"+unix(read(t, "examples/tiny/main.go"))+"```")
}

package cli_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/examples/internal/cli"
)

func TestFlagsAreReadAndMistakesNamed(t *testing.T) {
	parse := func(args ...string) (n int, out string, err error) {
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.IntVar(&n, "n", 1, "how `many`")
		var b strings.Builder
		err = cli.Parse(fs, args, "x does it.\n", &b)
		return n, b.String(), err
	}
	n, out, err := parse("--n", "3")
	assert.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Empty(t, out)
	_, out, err = parse("--help")
	assert.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, out, "x does it.\n  -n many")
	_, out, err = parse("--m")
	assert.ErrorContains(t, err, "-m; see --help")
	assert.Empty(t, out)
	_, _, err = parse("word")
	assert.EqualError(t, err, `unexpected argument "word"; see --help`)
}

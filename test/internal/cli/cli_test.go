package cli_test

import (
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/test/internal/cli"
)

func TestParse(t *testing.T) {
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
	assert.Contains(t, out, "x does it.\n\nFlags:\n  -n many")
	_, out, err = parse("--m")
	assert.ErrorContains(t, err, "-m; see --help")
	assert.Empty(t, out)
	_, _, err = parse("word")
	assert.EqualError(t, err, `unexpected argument "word"; see --help`)
}

func TestLinesHaveTheElapsedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		printf := cli.NewPrinter(&b)
		printf("%d pods run", 3)
		time.Sleep(61*time.Second + 230*time.Millisecond)
		printf("done")
		assert.Equal(t, "     0s  3 pods run\n 1m1.2s  done\n", b.String())
	})
}

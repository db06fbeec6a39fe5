//go:build unix

package modern

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrongFlagsAreErrorsThatNameTheFlag(t *testing.T) {
	for want, args := range map[string][]string{
		`--drivers: unknown driver "none"`:     {"--drivers", "none"},
		"--numa must be 1 or 2":                {"--numa", "3"},
		"--cpus must be a multiple of --numa":  {"--cpus", "3"},
		"--memory must be at least 1024":       {"--memory", "512"},
		"--slowness must be at least 1":        {"--slowness", "0.5"},
		"--virtual-time requires --cpus 1":     {"--virtual-time"},
		"flag provided but not defined: -nope": {"--nope"},
	} {
		_, err := parseFlags(args, io.Discard)
		assert.ErrorContains(t, err, want)
	}
}

func TestArgumentsAfterTheFlagsAreTheCommand(t *testing.T) {
	o, err := parseFlags([]string{"--cache", "/c", "--drivers", "systemd", "compare", "--all"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []string{"systemd"}, o.drivers)
	assert.Equal(t, []string{"compare", "--all"}, o.command)
	o, err = parseFlags([]string{"--cache", "/c"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []string{"cgroupfs", "systemd"}, o.drivers)
	assert.Equal(t, smoke, o.command)
}

func TestTheCommandRunsWithItsArgumentsUnchanged(t *testing.T) {
	o := options{slowness: 2.5, command: []string{"compare", "--focus", "it's a|b $HOME"}}
	text := script(systemd, "", o)
	assert.Contains(t, text, "KUBEPARTS_CGROUP_DRIVER=systemd KUBEPARTS_SLOWNESS=2.5")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+lines[len(lines)-1]).Output()
	require.NoError(t, err)
	assert.Equal(t, "/job/test\ncompare\n--save\n/out\n--control-planes\n/job/control-planes\n--focus\nit's a|b $HOME\n", string(out))
	assert.Equal(t, []string{"compare", "--focus", "it's a|b $HOME"}, o.command)
	text = script(systemd, "", options{virtual: true, command: []string{"compare"}})
	assert.Contains(t, text, "\n'/job/test' 'compare' '--save' '/out'\n", "the control planes are in the machine")
	text = script(systemd, "10.0.2.2:5000", options{command: []string{"e2enode", "--missing"}})
	assert.Contains(t, text, "\ncp /job/names.tsv /out/results.tsv\n'/job/test' 'e2enode' '--emulated' '10.0.2.2:5000'")
	assert.Contains(t, script(systemd, "", options{command: []string{"sh", "-c", "date"}}), "\n'sh' '-c' 'date'\n")
}

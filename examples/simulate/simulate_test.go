package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run is the program without its process.
func run(t *testing.T, args ...string) (out string, broken bool) {
	t.Helper()
	var b bytes.Buffer
	o, err := parseFlags(args, &b)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		broken, err = simulate(t.Context(), o, &b)
	})
	require.NoError(t, err)
	return b.String(), broken
}

func TestAManifestsPodLivesAsItsImagesSay(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "crash.svg")
	out, broken := run(t, "--manifest", "pods/crash.yaml", "--for", "10m", "--svg", picture, "--all")
	assert.False(t, broken)
	assert.Contains(t, out, "  setup                 -o\n")
	assert.Contains(t, out, "1m42s  shop/crash-node-1 app    back-off: CrashLoopBackOff\n")
	assert.Contains(t, out, "10m0s of virtual time\n")
	assert.Regexp(t, `crash-node-1 Running ready=\d/2 restarts=6`, out)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Contains(t, string(svg), "CrashLoopBackOff")
}

func TestASeedIsShownTheSameEachTime(t *testing.T) {
	first, _ := run(t, "--seed", "7", "--calm")
	again, broken := run(t, "--seed", "7", "--calm")
	assert.Equal(t, first, again)
	assert.False(t, broken)
	assert.Contains(t, first, "0 broken")
	assert.NotContains(t, first, "is killed")
}

func TestALongListIsCut(t *testing.T) {
	short, _ := run(t, "--seed", "7")
	all, _ := run(t, "--seed", "7", "--all")
	assert.Contains(t, short, "lines more: --all\n")
	assert.Greater(t, strings.Count(all, "\n"), strings.Count(short, "\n"))
}

func TestAScheduleCanBeReplayed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schedule.txt")
	require.NoError(t, os.WriteFile(file, []byte("0s add web main:c=run\n5s kill down=3s\n20s delete web\n"), 0o644))
	out, broken := run(t, "--schedule", file)
	assert.False(t, broken)
	assert.Contains(t, out, "agent: 1 is killed")
	assert.Contains(t, out, "nothing left")
	assert.Contains(t, out, "3 steps, 2 agents")
}

func TestABadCommandLineIsToldByName(t *testing.T) {
	for args, want := range map[string]string{
		"--pods=-1":                        "--pods",
		"extra":                            `"extra"`,
		"--sead=1":                         "sead",
		"--manifest=a --schedule=b":        "exclude",
		"--manifest=a --pods=3":            "--pods",
		"--svg=x --manifest=none --for=1x": "1x",
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		assert.ErrorContains(t, err, want, args)
	}
	_, err := parseFlags([]string{"--help"}, io.Discard)
	assert.ErrorIs(t, err, flag.ErrHelp)
}

func TestABadFileIsToldByName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(file, []byte("1s dance web\n"), 0o644))
	for _, o := range []options{{schedule: file}, {schedule: "not-there"}, {manifest: file, length: time.Minute}, {manifest: "not-there", length: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			_, err := simulate(t.Context(), o, io.Discard)
			assert.ErrorContains(t, err, o.schedule+o.manifest)
		})
	}
}

func TestTheProgramIsNoTestForThoseWhoRunIt(t *testing.T) {
	program := filepath.Join(t.TempDir(), "simulate.exe")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	begun := time.Now()
	out, err = exec.Command(program, "--seed", "3", "--for", "10m").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Less(t, time.Since(begun), time.Minute, "it is not waited for what is simulated")
	assert.NotContains(t, string(out), "PASS")
	assert.NotContains(t, string(out), "ok ")
	out, err = exec.Command(program, "--help").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "-manifest file")
	assert.NotContains(t, string(out), "test.", "nor has it a test's flags")
	out, err = exec.Command(program, "-manifest=nowhere").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "nowhere")
}

func TestAPictureThatIsThereStaysIfNothingCouldBeSimulated(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.svg")
	require.NoError(t, writable(picture))
	require.NoError(t, os.WriteFile(picture, []byte("precious"), 0o600))
	require.NoError(t, writable(picture))
	got, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(got))
	assert.ErrorContains(t, writable(filepath.Join(t.TempDir(), "no", "p.svg")), "p.svg")
}

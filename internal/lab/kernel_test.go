package lab

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnArchiveIsWhatCpioReads(t *testing.T) {
	var a Archive
	a.Add("dir", CpioDir, nil)
	a.Add("dir/file", CpioFile, []byte("text"))
	text := a.End()
	assert.Zero(t, len(text)%4)
	assert.True(t, bytes.HasPrefix(text, []byte("070701")))
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("no cpio here to ask")
	}
	list := exec.Command("cpio", "-t", "--quiet")
	list.Stdin = bytes.NewReader(text)
	out, err := list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "dir\ndir/file\n", string(out))
}

func TestTheOutputOfAMachineIsEvaluated(t *testing.T) {
	printed := "boot\n--- PASS: TestA\nkubeparts-suite a exit 0\n--- FAIL: TestB\nkubeparts-suite b exit 1\nPASS\nkubeparts-suite c exit 0\npanic"
	out, err := suiteOutput(printed, "a")
	require.NoError(t, err)
	assert.Equal(t, "boot\n--- PASS: TestA\n", out)
	out, err = suiteOutput(printed, "b")
	assert.ErrorContains(t, err, "b failed")
	assert.Contains(t, out, "TestB")
	_, err = suiteOutput(printed, "c")
	assert.ErrorContains(t, err, "c ran no test")
	_, err = suiteOutput(printed, "d")
	assert.ErrorContains(t, err, "d did not end")
	assert.Equal(t, "githubcom-x-y", suiteName("github.com/x/y"))
}

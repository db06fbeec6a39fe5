package script_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/script"
)

func mustParse(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse("story.txt", text)
	require.NoError(t, err)
	return s
}

func TestAScriptIsPlayedCommandByCommand(t *testing.T) {
	s := mustParse(t, "# a comment\r\nsay hello \"big world\"\r\n> hello\r\n> big world\n\n  # another\nnothing\nsay x\n> y\n")
	var seen [][]string
	played, err := s.Play(func(c *script.Command) ([]string, error) {
		seen = append(seen, c.Words)
		if c.Name() == "say" {
			return c.Words[1:], nil
		}
		return nil, nil
	})
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"say", "hello", "big world"}, {"nothing"}, {"say", "x"}}, seen)
	assert.Equal(t, "# a comment\nsay hello \"big world\"\n> hello\n> big world\n\n  # another\nnothing\nsay x\n> x\n", played.String())
	assert.Equal(t, "story.txt:8: say x\n\t- > y\n\t+ > x\n", s.Diff(played))
	assert.Empty(t, played.Diff(played))
}

func TestAnExpectationBelowACommentBelongsToTheCommandAbove(t *testing.T) {
	s := mustParse(t, "say a\n# why\n> a\n")
	assert.Equal(t, []string{"a"}, s.Commands()[0].Expected)
	assert.Equal(t, "say a\n# why\n> a\n", s.String())
	played, err := s.Play(func(*script.Command) ([]string, error) { return []string{"a"}, nil })
	require.NoError(t, err)
	assert.Contains(t, s.Diff(played), "story.txt: layout differs")
}

func TestErrorsNameTheFileAndTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"> first":                "story.txt:1: expectation without a command",
		"# c\n\n> first":         "story.txt:3: expectation without a command",
		"ok\nsay \"half":         `story.txt:2: invalid quoted string at "half`,
		"ok\nsay \"\\q\"":        "story.txt:2: invalid quoted string",
		"ok\nhalf\rway":          `story.txt:2: '\r' in the middle of the line`,
		"ok\nsay \x00 nothing\n": `story.txt:2: '\x00' in the middle of the line`,
	} {
		_, err := script.Parse("story.txt", text)
		assert.ErrorContains(t, err, want, "%q", text)
	}
	cause := errors.New("no such pod")
	_, err := mustParse(t, "\nkill web").Play(func(c *script.Command) ([]string, error) { return nil, c.Errorf("%w", cause) })
	assert.EqualError(t, err, "story.txt:2: no such pod", "once, though both say where")
	assert.ErrorIs(t, err, cause)
	_, err = mustParse(t, "kill web").Play(func(*script.Command) ([]string, error) { return []string{"a\nb"}, nil })
	assert.EqualError(t, err, `story.txt:1: result with more than one line: "a\nb"`)
}

func TestArgumentsAreWordsNumbersAndTimes(t *testing.T) {
	c := mustParse(t, `kill web 30 1.5 "" x`).Commands()[0]
	assert.Equal(t, "kill", c.Name())
	assert.Equal(t, "web", c.Arg(1))
	assert.Empty(t, c.Arg(4))
	assert.Empty(t, c.Arg(6))
	assert.Empty(t, c.Arg(-1))
	n, err := c.Int(2)
	assert.NoError(t, err)
	assert.EqualValues(t, 30, n)
	d, err := c.Seconds(3)
	assert.NoError(t, err)
	assert.Equal(t, 1500*time.Millisecond, d)
	_, err = c.Int(5)
	assert.EqualError(t, err, `argument 5 of kill is "x", not a whole number`)
	_, err = c.Seconds(6)
	assert.EqualError(t, err, `argument 6 of kill is "", not a number of seconds`)
	for _, odd := range []string{"NaN", "-1", "1e300", "Inf"} {
		_, err = mustParse(t, "advance "+odd).Commands()[0].Seconds(1)
		assert.Error(t, err, odd)
	}
}

func TestRunUpdatesFilesOrComparesThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "story.txt")
	require.NoError(t, os.WriteFile(file, []byte("say a\nsay b\n> c\n"), 0o644))
	play := func(t *testing.T, s *script.Script) *script.Script {
		played, err := s.Play(func(c *script.Command) ([]string, error) { return c.Words[1:], nil })
		require.NoError(t, err)
		return played
	}
	script.Run(t, file, true, play)
	script.Run(t, file, false, play)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "say a\n> a\nsay b\n> b\n", string(text))
}

func FuzzParse(f *testing.F) {
	f.Add("# a\nsay \"x y\" z\n> x\n>\n\n> y\n")
	f.Add("say a\r\n>a\r\n")
	f.Add("\u00a0\nsay\t\tb")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse("f", text)
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "f:"), "%v", err)
			return
		}
		for _, c := range s.Commands() {
			require.NotEmpty(t, c.Words)
		}
		again, err := script.Parse("f", s.String())
		require.NoError(t, err, "what was written is read again")
		require.Equal(t, s.String(), again.String())
		require.Len(t, again.Commands(), len(s.Commands()))
		played, err := s.Play(func(c *script.Command) ([]string, error) { return c.Expected, nil })
		require.NoError(t, err)
		for i, c := range played.Commands() {
			require.Equal(t, s.Commands()[i].Words, c.Words)
		}
	})
}

func ExampleScript_Play() {
	s, err := script.Parse("greet.txt", "# a scenario\ngreet \"big world\"\n> hello, moon\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	played, err := s.Play(func(c *script.Command) ([]string, error) {
		return []string{"hello, " + c.Arg(1)}, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(s.Diff(played))
	// Output:
	// greet.txt:2: greet big world
	// 	- > hello, moon
	// 	+ > hello, big world
}

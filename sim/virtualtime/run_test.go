package virtualtime_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

func TestADayTakesNoTime(t *testing.T) {
	began := time.Now()
	err := virtualtime.Run(func(ctx context.Context) error {
		assert.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().UTC())
		time.Sleep(24 * time.Hour)
		assert.Equal(t, 2, time.Now().UTC().Day())
		return errors.New("of f")
	})
	assert.EqualError(t, err, "of f")
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.NoError(t, virtualtime.Run(func(context.Context) error { return nil }))
}

func TestRunWaitsForTheGoroutinesOfTheFunction(t *testing.T) {
	var ended bool
	err := virtualtime.Run(func(ctx context.Context) error {
		go func() {
			<-ctx.Done()
			ended = true
		}()
		synctest.Wait()
		return nil
	})
	assert.NoError(t, err)
	assert.True(t, ended)
}

func TestEachRunHasAClockOfItsOwn(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			length := time.Duration(i) * time.Hour
			assert.NoError(t, virtualtime.Run(func(context.Context) error {
				began := time.Now()
				time.Sleep(length)
				assert.Equal(t, length, time.Since(began))
				return nil
			}))
		})
	}
	wg.Wait()
}

func TestPanicsReachTheCaller(t *testing.T) {
	recovered := func(f func(ctx context.Context) error) (v any) {
		defer func() { v = recover() }()
		_ = virtualtime.Run(f)
		return nil
	}
	assert.Contains(t, recovered(func(context.Context) error { panic("of f") }), "of f\n\ngoroutine ", "with the stack of f")
	nested := recovered(func(context.Context) error {
		return virtualtime.Run(func(context.Context) error { return nil })
	})
	assert.Contains(t, nested, "within a synctest bubble")

	stuck := recovered(func(context.Context) error {
		go func() { <-make(chan struct{}) }()
		return nil
	})
	require.Implements(t, (*error)(nil), stuck)
	assert.ErrorContains(t, stuck.(error), "deadlock")
	late := recovered(func(context.Context) error {
		time.AfterFunc(time.Hour, func() {})
		go time.Sleep(time.Hour)
		return nil
	})
	assert.NotNil(t, late, "time stands still after the function")
}

func TestGoexitIsAnError(t *testing.T) {
	err := virtualtime.Run(func(context.Context) error {
		runtime.Goexit()
		return nil
	})
	assert.ErrorContains(t, err, "runtime.Goexit")
}

// A program without package testing of its own gets neither flags nor output from it.
func TestAProgramRunsInVirtualTime(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(`package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

func main() {
	flag.Parse()
	for range 2 {
		began := time.Now()
		err := virtualtime.Run(func(context.Context) error {
			time.Sleep(time.Hour)
			return nil
		})
		fmt.Println(err, time.Since(began) < time.Minute)
	}
}
`), 0o644))
	program := filepath.Join(dir, "program.exe")
	out, err := exec.Command("go", "build", "-o", program, filepath.Join(dir, "main.go")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "<nil> true\n<nil> true\n", string(out))
	out, err = exec.Command(program, "-h").CombinedOutput()
	require.NoError(t, err)
	assert.NotContains(t, string(out), "test.")
}

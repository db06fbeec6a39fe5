//go:build unix

package e2enode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The suite starts, stops and restarts the kubelet with sudo, systemd-run and systemctl. On a
// machine without systemd, this program takes their places under these names: it implements the
// calls that the suite makes, and no others. With systemd, it takes that of sudo.
var standIns = map[string]func(args []string) error{
	"sudo":        sudo,
	"systemctl":   func(args []string) error { return systemctl(unitsDir(), args) },
	"systemd-run": func(args []string) error { return systemdRun(unitsDir(), args) },
}

// Variables of the environment of the stand-ins.
const (
	unitsVariable = "E2ENODE_UNITS" // directory of the units
	pathVariable  = "E2ENODE_PATH"  // PATH of the units, which does not contain the stand-ins
)

func unitsDir() string { return os.Getenv(unitsVariable) }

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// sudo replaces the process by the command.
func sudo(args []string) error {
	if len(args) == 0 {
		return errors.New("sudo: no command")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("sudo: %w", err)
	}
	return fmt.Errorf("sudo: %w", syscall.Exec(program, args, os.Environ()))
}

// A unit is a process that can be restarted, as a transient service of systemd.
type unit struct {
	Name string
	Dir  string // working directory
	Log  string // file that the output is appended to
	Args []string

	PID     int
	Started string // time in /proc/PID/stat: PIDs are reused
}

// systemdRun starts a unit: systemd-run with options and a command.
func systemdRun(units string, args []string) error {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("systemd 252 (stand-in of e2enode)")
		return nil
	}
	u, err := parseRun(args)
	if err != nil {
		return err
	}
	if u.Dir, err = os.Getwd(); err != nil {
		return err
	}
	return u.start(units)
}

// parseRun reads the arguments of systemd-run.
func parseRun(args []string) (u unit, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		args = args[1:]
		if option == "-p" && len(args) > 0 {
			option, args = args[0], args[1:]
		}
		if name, ok := strings.CutPrefix(option, "--unit="); ok {
			u.Name = strings.TrimSuffix(name, ".service")
		}
		if log, ok := strings.CutPrefix(option, "StandardError=append:"); ok {
			u.Log = log
		}
	}
	if u.Name == "" || len(args) == 0 {
		return u, errors.New("systemd-run: want --unit=NAME and a command")
	}
	unescape := strings.NewReplacer("%%", "%", "$$", "$")
	for _, arg := range args {
		u.Args = append(u.Args, unescape.Replace(arg))
	}
	u.Log = cmp.Or(u.Log, os.DevNull)
	return u, nil
}

// systemctl is called as systemctl VERB UNIT, or systemctl list-units PATTERN [--state=running].
func systemctl(units string, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("systemctl: unexpected arguments %q", args)
	}
	if args[0] == "list-units" {
		return listUnits(units, args[1], len(args) > 2 && args[2] == "--state=running")
	}
	u, err := readUnit(units, args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "reset-failed":
		return nil
	case "kill":
		return u.signal(syscall.SIGTERM)
	case "stop":
		return u.stop()
	case "start", "restart":
		return errors.Join(u.stop(), u.start(units))
	default:
		return fmt.Errorf("systemctl: unsupported verb %q", args[0])
	}
}

func listUnits(units, pattern string, running bool) error {
	all, err := readUnits(units)
	for _, u := range all {
		if ok, _ := path.Match(pattern, u.Name); ok && (u.runs() || !running) {
			fmt.Printf("%s.service loaded active %s\n", u.Name, map[bool]string{true: "running", false: "exited"}[u.runs()])
		}
	}
	return err
}

func readUnits(units string) (all []unit, err error) {
	files, err := filepath.Glob(filepath.Join(units, "*.json"))
	for _, file := range files {
		u, failed := readUnit(units, strings.TrimSuffix(filepath.Base(file), ".json"))
		err = errors.Join(err, failed)
		all = append(all, u)
	}
	return all, err
}

func readUnit(units, name string) (u unit, err error) {
	data, err := os.ReadFile(filepath.Join(units, strings.TrimSuffix(name, ".service")+".json"))
	if err != nil {
		return u, fmt.Errorf("unit %s: %w", name, err)
	}
	return u, json.Unmarshal(data, &u)
}

// start starts the process and records it. The process outlives this one.
func (u unit) start(units string) error {
	log, err := os.OpenFile(u.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start unit %s: %w", u.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(u.Args[0], u.Args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = u.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if path := os.Getenv(pathVariable); path != "" {
		cmd.Env = append(os.Environ(), "PATH="+path)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start unit %s: %w", u.Name, err)
	}
	u.PID = cmd.Process.Pid
	_, u.Started = u.process()
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(units, u.Name+".json"), data, 0o600)
}

// stopTimeout is systemd's default: after it the process is killed.
const stopTimeout = 90 * time.Second

// stop terminates the process, if it runs, and waits for its end.
func (u unit) stop() error {
	if err := u.signal(syscall.SIGTERM); err != nil {
		return err
	}
	for deadline := time.Now().Add(stopTimeout); u.runs(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			if err := u.signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
	}
	return nil
}

// signal does nothing if the process does not run.
func (u unit) signal(s syscall.Signal) error {
	if !u.runs() {
		return nil
	}
	if err := syscall.Kill(u.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal unit %s: %w", u.Name, err)
	}
	return nil
}

// runs reports whether the process exists. A zombie has terminated.
func (u unit) runs() bool {
	state, started := u.process()
	return started != "" && started == u.Started && state != "Z"
}

// process returns the state and the start time of the process with the unit's PID; empty if
// there is none. The name of the process, in parentheses, may contain spaces.
func (u unit) process() (state, started string) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(u.PID), "stat"))
	if err != nil {
		return "", ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}

// stopUnits stops all units.
func stopUnits(units string) error {
	all, err := readUnits(units)
	for _, u := range all {
		err = errors.Join(err, u.stop())
	}
	return err
}

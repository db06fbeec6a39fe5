// Package replay replays recordings.
package replay

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// command is one line of the runner.
type command struct {
	Do        string `json:"do"`
	Objects   int    `json:"objects"`
	Events    int    `json:"events"`
	Rounds    int    `json:"rounds"`
	Items     int    `json:"items"`
	Delivered bool   `json:"delivered"`
}

// answer is one line to the runner.
type answer map[string]any

// conversation reads commands and writes answers, one JSON object a line, flushed at once.
//
// When the runner closes its end, or is gone, every wait ends with an error.
type conversation struct {
	lines   chan []byte
	gone    chan struct{}
	out     *json.Encoder
	timeout time.Duration
}

func newConversation(in io.Reader, out io.Writer, timeout time.Duration) *conversation {
	c := &conversation{
		lines:   make(chan []byte),
		gone:    make(chan struct{}),
		out:     json.NewEncoder(out), // Each Encode is one write of a whole line.
		timeout: timeout,
	}
	go c.read(in)
	return c
}

func (c *conversation) read(in io.Reader) {
	defer close(c.gone)
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		line := append([]byte(nil), scanner.Bytes()...)
		if len(line) > 0 {
			c.lines <- line
		}
	}
}

// next returns the next command; io.EOF when there will be none.
func (c *conversation) next() (command, error) {
	var cmd command
	select {
	case line := <-c.lines:
		if err := json.Unmarshal(line, &cmd); err != nil {
			return cmd, fmt.Errorf("command %q: %w", line, err)
		}
		return cmd, nil
	case <-c.gone:
		return cmd, io.EOF
	}
}

func (c *conversation) answer(a answer) error {
	return c.out.Encode(a)
}

// wait returns when done is closed or has a value; what names it for the error that says why not.
func (c *conversation) wait(done <-chan struct{}, what func() string) error {
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-c.gone:
		return errors.New("stdin was closed while waiting for " + what())
	case <-timer.C:
		return fmt.Errorf("waited %s for %s", c.timeout, what())
	}
}

// named returns a constant description for wait.
func named(what string) func() string {
	return func() string { return what }
}

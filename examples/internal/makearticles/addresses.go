package main

import (
	"fmt"
	"strings"
)

// address is one State of the Union address.
type address struct {
	year      int
	president string
	format    string // txt, html, md, pdf or docx
	date      string // of delivery; for all but txt
}

// file is the name of the document: it sorts by year.
func (a address) file() string {
	slug := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(a.president), ".", ""), " ", "-")
	return fmt.Sprintf("%d-%s.%s", a.year, slug, a.format)
}

func (a address) title() string { return fmt.Sprintf("State of the Union %d", a.year) }

func neighbour(i int) *address {
	if i < 0 || i >= len(addresses) {
		return nil
	}
	return &addresses[i]
}

// addresses are the sixty-four that the folder holds.
var addresses = []address{
	{1790, "George Washington", "md", "December 8, 1790"},
	{1791, "George Washington", "txt", ""},
	{1792, "George Washington", "txt", ""},
	{1793, "George Washington", "txt", ""},
	{1794, "George Washington", "txt", ""},
	{1795, "George Washington", "txt", ""},
	{1796, "George Washington", "html", "December 7, 1796"},
	{1797, "John Adams", "txt", ""},
	{1798, "John Adams", "txt", ""},
	{1799, "John Adams", "txt", ""},
	{1800, "John Adams", "md", "November 22, 1800"},
	{1801, "Thomas Jefferson", "html", "December 8, 1801"},
	{1802, "Thomas Jefferson", "txt", ""},
	{1803, "Thomas Jefferson", "md", "October 17, 1803"},
	{1804, "Thomas Jefferson", "txt", ""},
	{1805, "Thomas Jefferson", "txt", ""},
	{1806, "Thomas Jefferson", "txt", ""},
	{1807, "Thomas Jefferson", "txt", ""},
	{1808, "Thomas Jefferson", "txt", ""},
	{1809, "James Madison", "txt", ""},
	{1810, "James Madison", "txt", ""},
	{1811, "James Madison", "txt", ""},
	{1812, "James Madison", "md", "November 4, 1812"},
	{1813, "James Madison", "txt", ""},
	{1814, "James Madison", "html", "September 20, 1814"},
	{1815, "James Madison", "txt", ""},
	{1816, "James Madison", "txt", ""},
	{1863, "Abraham Lincoln", "docx", "December 8, 1863"},
	{1882, "Chester A. Arthur", "txt", ""},
	{1883, "Chester A. Arthur", "txt", ""},
	{1913, "Woodrow Wilson", "md", "December 2, 1913"},
	{1916, "Woodrow Wilson", "txt", ""},
	{1917, "Woodrow Wilson", "html", "December 4, 1917"},
	{1920, "Woodrow Wilson", "txt", ""},
	{1932, "Herbert Hoover", "txt", ""},
	{1934, "Franklin D. Roosevelt", "md", "January 3, 1934"},
	{1937, "Franklin D. Roosevelt", "md", "January 6, 1937"},
	{1939, "Franklin D. Roosevelt", "txt", ""},
	{1940, "Franklin D. Roosevelt", "txt", ""},
	{1941, "Franklin D. Roosevelt", "html", "January 6, 1941"},
	{1942, "Franklin D. Roosevelt", "txt", ""},
	{1944, "Franklin D. Roosevelt", "html", "January 11, 1944"},
	{1949, "Harry S. Truman", "html", "January 5, 1949"},
	{1951, "Harry S. Truman", "txt", ""},
	{1954, "Dwight D. Eisenhower", "pdf", "January 7, 1954"},
	{1962, "John F. Kennedy", "pdf", "January 11, 1962"},
	{1964, "Lyndon B. Johnson", "html", "January 8, 1964"},
	{1965, "Lyndon B. Johnson", "md", "January 4, 1965"},
	{1969, "Lyndon B. Johnson", "txt", ""},
	{1972, "Richard Nixon", "md", "January 20, 1972"},
	{1973, "Richard Nixon", "txt", ""},
	{1975, "Gerald R. Ford", "html", "January 15, 1975"},
	{1979, "Jimmy Carter", "txt", ""},
	{1980, "Jimmy Carter", "md", "January 23, 1980"},
	{1985, "Ronald Reagan", "txt", ""},
	{1986, "Ronald Reagan", "html", "February 4, 1986"},
	{1987, "Ronald Reagan", "txt", ""},
	{1990, "George Bush", "txt", ""},
	{1991, "George Bush", "md", "January 29, 1991"},
	{2001, "George W. Bush", "md", "February 27, 2001"},
	{2002, "George W. Bush", "html", "January 29, 2002"},
	{2012, "Barack Obama", "docx", "January 24, 2012"},
	{2017, "Donald J. Trump", "txt", ""},
	{2019, "Donald J. Trump", "html", "February 5, 2019"},
}
